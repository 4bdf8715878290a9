// Sources: the pre_tokenizer section of the tokenizer.json that each model family publishes; which name
// stands for which family is defined by llama.cpp (llama-vocab.cpp), whose converter writes
// tokenizer.ggml.pre.
//
// Written for PCRE2 so that no text makes them slow: groups that repeat are possessive, and nothing can match
// the same run of characters in two ways.
#include "text/pretokenizer_table.h"

#include <algorithm>

namespace sluice::text {
namespace {

using enum SplitStep::Kind;

// GPT-2 and the families that kept its expression.
constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// GPT-4 (cl100k) as Llama 3 uses it, digits in threes; Qwen 2, digits singly; and Qwen 3.5, marks with
// letters.
constexpr const char* kLlama3Words =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Words =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35Words =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Qwen 2's without the English contractions.
constexpr const char* kUfakzekaWords =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// GPT-4o (o200k): words split where lower case turns to upper case.
constexpr const char* kGpt4oWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Mistral's Tekken: GPT-4o's without contractions, digits singly.
constexpr const char* kTekkenWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Kimi K2: GPT-4o's with Chinese characters apart. The original takes "these categories, but not Han" with
// &&, which PCRE2 lacks; here it is everything but the other categories and Han.
constexpr const char* kKimiK2Words = R"(\p{sc:Han}+|)"
                                     R"([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*)"
                                     R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+)"
                                     R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
                                     R"([^\r\n\p{L}\p{N}]?[^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]+)"
                                     R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}]*)"
                                     R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
                                     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek V3 and its relatives.
constexpr const char* kChineseAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kDeepSeek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSpark25Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
// DeepSeek LLM lists its letters one range after the other.
constexpr const char* kDeepSeekLlmLetters =
    R"(\s?[A-Za-z)"
    R"(\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
    R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})"
    R"(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
    R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})"
    R"(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* kDeepSeekLlmPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kChineseAndHangul = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// The spaces at the very end; the look-behind lets a match start only where a run of them does.
constexpr const char* kTrailingSpace = R"((?<!\s)\s++\z)";
// Falcon: punctuation first, runs of it together.
constexpr const char* kFalconPunctuation = R"([\p{P}$+<=>^~|`]+)";
constexpr const char* kDefaultPunctuation = R"([\p{P}$+<=>^~|]+)";
// BLOOM and relatives: everything up to a space or one of these marks.
constexpr const char* kBloomWords = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr const char* kBailingWords =
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoderWords =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
// EXAONE MoE: tokens may span words, so spaces between letters don't cut.
constexpr const char* kExaoneMoeWords = R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|)"
                                        R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}|)"
                                        R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kJais2Words =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|)"
    R"(\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)";
constexpr const char* kMiniCpm5Words =
    R"('(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[！…“”‘’—：；，\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|)"
    R"([\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kYoutuWords =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
constexpr const char* kAnyDigit = R"(\p{N})";
constexpr const char* kAnyDigits = R"(\p{N}+)";
constexpr const char* kUpToThreeDigits = R"(\p{N}{1,3})";
constexpr const char* kThreeAsciiDigits = R"([0-9][0-9][0-9])";
constexpr const char* kLineEnd = R"([\r\n])";
constexpr const char* kLines = R"([^\n]+|\n+)";

constexpr SplitStep kGpt2[] = {{kPattern, kGpt2Words}};
constexpr SplitStep kLlama3[] = {{kPattern, kLlama3Words}};
constexpr SplitStep kQwen2[] = {{kPattern, kQwen2Words}};
constexpr SplitStep kQwen35[] = {{kPattern, kQwen35Words}};
constexpr SplitStep kUfakzeka[] = {{kPattern, kUfakzekaWords}};
constexpr SplitStep kGpt4o[] = {{kPattern, kGpt4oWords}};
constexpr SplitStep kTekken[] = {{kPattern, kTekkenWords}};
constexpr SplitStep kKimiK2[] = {{kPattern, kKimiK2Words}};
constexpr SplitStep kSingleDigits[] = {{kPattern, kAnyDigit}, {kPattern, kGpt2Words}};
constexpr SplitStep kDeepSeek3[] = {
    {kPattern, kUpToThreeDigits}, {kPattern, kChineseAndKana}, {kPattern, kDeepSeek3Words}};
constexpr SplitStep kSpark25[] = {{kPattern, kUpToThreeDigits},
                                  {kPattern, kChineseAndKana},
                                  {kPattern, kSpark25Words},
                                  {kPattern, kAnyDigit}};
constexpr SplitStep kDeepSeekLlm[] = {
    {kPattern, kLineEnd},       {kPattern, kDeepSeekLlmLetters}, {kPattern, kDeepSeekLlmPunctuation},
    {kPattern, kTrailingSpace}, {kPattern, kChineseAndHangul},   {kPattern, kAnyDigits}};
constexpr SplitStep kDeepSeekCoder[] = {{kPattern, kLineEnd},
                                        {kPattern, R"(\s?\p{L}+)"},
                                        {kPattern, R"(\s?\p{P}+)"},
                                        {kPattern, kChineseAndHangul},
                                        {kPattern, kAnyDigit}};
constexpr SplitStep kFalcon[] = {
    {kPattern, kFalconPunctuation}, {kPattern, kGpt2Words}, {kPattern, kThreeAsciiDigits}};
constexpr SplitStep kDefault[] = {{kPattern, kDefaultPunctuation},
                                  {kPattern, kGpt2Words},
                                  {kPattern, kAnyDigits},
                                  {kPattern, kThreeAsciiDigits}};
constexpr SplitStep kBloom[] = {{kPattern, kBloomWords}};
constexpr SplitStep kViking[] = {{kPattern, kBloomWords}, {kPattern, kAnyDigit}};
constexpr SplitStep kBailing[] = {{kPattern, kBailingWords}};
constexpr SplitStep kSeedCoder[] = {{kPattern, kSeedCoderWords}};
constexpr SplitStep kExaoneMoe[] = {{kPattern, kExaoneMoeWords}};
constexpr SplitStep kJais2[] = {{kPattern, kJais2Words}};
constexpr SplitStep kMiniCpm5[] = {{kPattern, kUpToThreeDigits}, {kPattern, kMiniCpm5Words}};
constexpr SplitStep kYoutu[] = {{kPattern, kYoutuScripts}, {kPattern, kYoutuWords}};
constexpr SplitStep kSuperBpe[] = {{kPattern, kAnyDigits}, {kDigitTripleBorders, nullptr}};
constexpr SplitStep kTinyAya[] = {{kDigitTriplesWord, nullptr}, {kPattern, kGpt4oWords}};
constexpr SplitStep kAfmoe[] = {
    {kDigitTriples, nullptr}, {kPattern, kAfmoeScripts}, {kPattern, kDeepSeek3Words}};
constexpr SplitStep kLaguna[] = {{kPattern, kLines}, {kPattern, kQwen2Words}};
constexpr SplitStep kGemma4[] = {{kPattern, kLines}};
constexpr SplitStep kChameleon[] = {{kPattern, "<sentinel:[0-9]+>"},       {kPattern, "(IMGIMG)[A-I]{1,4}Z"},
                                    {kPattern, R"([\t\n]|    |  )"},       {kPattern, kAnyDigit},
                                    {kPattern, R"([\p{P}!-/:-@\[-`{-~])"}, {kPattern, kGpt2Words}};

// Names of tokenizer.ggml.pre that share a row.
constexpr std::string_view kLlama3Names[] = {"llama-bpe", "llama3",   "llama-v3", "falcon3",     "falcon-h1",
                                             "pixtral",   "midm-2.0", "lfm2",     "jina-v5-nano"};
constexpr std::string_view kLlama3PlainNames[] = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"};
constexpr std::string_view kGpt2Names[] = {"gpt-2",   "phi-2",    "mpt",        "olmo",      "jais",
                                           "exaone4", "gigachat", "a.x-4.0",    "mellum",    "modern-bert",
                                           "jina-es", "jina-de",  "jina-v2-es", "jina-v2-de"};
constexpr std::string_view kGpt2KeepSpacesNames[] = {"trillion", "granite-docling"};
constexpr std::string_view kGpt2SeparatorNames[] = {"jina-v1-en", "jina-v2-code", "roberta-bpe"};
constexpr std::string_view kSingleDigitNames[] = {"starcoder", "refact",     "codeshell",
                                                  "exaone",    "minerva-7b", "mellum2"};
constexpr std::string_view kSingleDigitKeepSpacesNames[] = {"smollm", "command-r"};
constexpr std::string_view kQwen2Names[] = {"qwen2",   "deepseek-r1-qwen", "kormo", "f2llmv2",
                                            "hunyuan", "solar-open",       "grok-2"};
constexpr std::string_view kQwen2CleanNames[] = {"stablelm2", "megrez"};
constexpr std::string_view kQwen35Names[] = {"qwen35"};
constexpr std::string_view kUfakzekaNames[] = {"ufakzeka"};
constexpr std::string_view kGpt4oNames[] = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"};
constexpr std::string_view kGraniteEmbeddingNames[] = {"granite-embed-multi-97m"};
constexpr std::string_view kTekkenNames[] = {"tekken"};
constexpr std::string_view kKimiK2Names[] = {"kimi-k2"};
constexpr std::string_view kDeepSeek3Names[] = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"};
constexpr std::string_view kSpark25Names[] = {"spark2_5"};
constexpr std::string_view kDeepSeekLlmNames[] = {"deepseek-llm"};
constexpr std::string_view kDeepSeekCoderNames[] = {"deepseek-coder"};
constexpr std::string_view kFalconNames[] = {"falcon"};
constexpr std::string_view kBloomNames[] = {"bloom", "gpt3-finnish"};
constexpr std::string_view kPoroNames[] = {"poro-chat"};
constexpr std::string_view kVikingNames[] = {"viking"};
constexpr std::string_view kBailingNames[] = {"bailingmoe", "bailingmoe2", "llada-moe"};
constexpr std::string_view kSeedCoderNames[] = {"seed-coder"};
constexpr std::string_view kExaoneMoeNames[] = {"exaone-moe"};
constexpr std::string_view kJais2Names[] = {"jais-2"};
constexpr std::string_view kMiniCpm5Names[] = {"minicpm5"};
constexpr std::string_view kYoutuNames[] = {"youtu"};
constexpr std::string_view kSuperBpeNames[] = {"superbpe"};
constexpr std::string_view kTinyAyaNames[] = {"tiny_aya", "cohere2moe"};
constexpr std::string_view kAfmoeNames[] = {"afmoe"};
constexpr std::string_view kLagunaNames[] = {"laguna"};
constexpr std::string_view kGemma4Names[] = {"gemma4", "granite-embed-multi-311m"};
constexpr std::string_view kSarvamNames[] = {"sarvam-moe"};
constexpr std::string_view kChameleonNames[] = {"chameleon"};
constexpr std::string_view kDefaultNames[] = {"default"};

constexpr PreTokenizerSpec kSpecs[] = {
    {.names = kDefaultNames, .steps = kDefault},
    {.names = kLlama3Names, .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    {.names = kLlama3PlainNames, .steps = kLlama3},
    {.names = kGpt2Names, .steps = kGpt2},
    {.names = kGpt2KeepSpacesNames, .steps = kGpt2, .clean_up_spaces = false},
    {.names = kGpt2SeparatorNames, .steps = kGpt2, .add_separator = true},
    {.names = kSingleDigitNames, .steps = kSingleDigits},
    {.names = kSingleDigitKeepSpacesNames, .steps = kSingleDigits, .clean_up_spaces = false},
    {.names = kQwen2Names, .steps = kQwen2, .clean_up_spaces = false},
    {.names = kQwen2CleanNames, .steps = kQwen2},
    {.names = kQwen35Names, .steps = kQwen35, .clean_up_spaces = false},
    {.names = kUfakzekaNames, .steps = kUfakzeka, .clean_up_spaces = false},
    {.names = kGpt4oNames, .steps = kGpt4o, .clean_up_spaces = false},
    {.names = kGraniteEmbeddingNames, .steps = kGpt4o, .ignore_merges = true, .clean_up_spaces = false},
    {.names = kTekkenNames,
     .steps = kTekken,
     .ignore_merges = true,
     .add_bos = true,
     .clean_up_spaces = false},
    {.names = kKimiK2Names, .steps = kKimiK2, .clean_up_spaces = false},
    {.names = kDeepSeek3Names, .steps = kDeepSeek3, .clean_up_spaces = false},
    {.names = kSpark25Names, .steps = kSpark25, .clean_up_spaces = false},
    {.names = kDeepSeekLlmNames, .steps = kDeepSeekLlm, .clean_up_spaces = false},
    {.names = kDeepSeekCoderNames, .steps = kDeepSeekCoder, .clean_up_spaces = false},
    {.names = kFalconNames, .steps = kFalcon},
    {.names = kBloomNames, .steps = kBloom},
    {.names = kPoroNames, .steps = kBloom, .clean_up_spaces = false},
    {.names = kVikingNames, .steps = kViking, .clean_up_spaces = false},
    {.names = kBailingNames, .steps = kBailing, .clean_up_spaces = false},
    {.names = kSeedCoderNames, .steps = kSeedCoder, .clean_up_spaces = false},
    {.names = kExaoneMoeNames, .steps = kExaoneMoe},
    {.names = kJais2Names, .steps = kJais2},
    {.names = kMiniCpm5Names, .steps = kMiniCpm5, .ignore_merges = true},
    {.names = kYoutuNames, .steps = kYoutu, .ignore_merges = true, .clean_up_spaces = false},
    {.names = kSuperBpeNames, .steps = kSuperBpe, .clean_up_spaces = false},
    {.names = kTinyAyaNames, .steps = kTinyAya, .clean_up_spaces = false},
    {.names = kAfmoeNames, .steps = kAfmoe, .clean_up_spaces = false},
    {.names = kLagunaNames, .steps = kLaguna, .clean_up_spaces = false},
    {.names = kGemma4Names, .steps = kGemma4, .add_bos = true, .characters = true, .whole_line_ends = true},
    {.names = kSarvamNames, .steps = kGemma4, .characters = true, .clean_up_spaces = false},
    {.names = kChameleonNames, .steps = kChameleon, .add_bos = true, .clean_up_spaces = false},
};

}  // namespace

std::span<const PreTokenizerSpec> PreTokenizers() { return kSpecs; }

const PreTokenizerSpec& DefaultPreTokenizer() { return kSpecs[0]; }

const char* const kGpt2Pattern = kGpt2Words;
const char* const kSingleDigitPattern = kAnyDigit;

const PreTokenizerSpec* FindPreTokenizer(std::span<const std::string_view> patterns, bool ignore_merges,
                                         bool clean_up_spaces) {
  const PreTokenizerSpec* found = nullptr;
  for (const PreTokenizerSpec& spec : kSpecs) {
    const bool same = std::ranges::equal(spec.steps, patterns, [](const SplitStep& step, std::string_view pattern) {
      return step.kind == kPattern && step.pattern == pattern;
    });
    if (!same || spec.ignore_merges != ignore_merges || spec.characters || spec.add_separator) continue;
    if (spec.clean_up_spaces == clean_up_spaces) return &spec;
    if (found == nullptr) found = &spec;
  }
  return found;
}

const PreTokenizerSpec* FindPreTokenizer(std::string_view name) {
  for (const PreTokenizerSpec& spec : kSpecs) {
    if (std::find(spec.names.begin(), spec.names.end(), name) != spec.names.end()) return &spec;
  }
  return nullptr;
}

}  // namespace sluice::text
