#include "options.h"

#include <charconv>
#include <limits>

#include "glyphs.h"
#include "output.h"
#include "resolve.h"
#include "sluice/library.h"
#include "sluice/plan.h"

namespace sluice::app {

void ModelFlags::AddTo(CLI::App& command) {
  command.add_option("-m,--model,model", model, "A GGUF file, or the name of a model (see `sluice list`)")
      ->required();
  command.add_option("-t,--threads", threads, "Worker threads (default: one for each big core)");
  command.add_option("--kernels", kernels, "Kernels by name, e.g. scalar or avx2 (default: the fastest)");
  command.add_option("--memory", memory,
                     "Budget for everything, e.g. 8G (default: what is free, less a reserve)");
  command.add_option(
      "--residency", residency,
      "Where weights live: auto, resident, pin, lru or mmap (default: auto, resident if all fits, else pin)");
  command.add_flag("--strict", strict,
                   "Refuse what was not asked for: a shorter context, fewer bits of KV, streaming");
  command.add_option("--ring", ring, "Memory that streamed weights pass through (default: 64M)");
  command.add_option(
      "--io", io,
      "How storage is read: auto, uring, pread, or buffered: through the page cache, which is emptied behind "
      "(default: auto)");
  command.add_option("--lru-blocks", lru_blocks, "Blocks in the cache of --residency lru (default: 2)");
  command.add_option(
      "-c,--ctx-size,--context", context_length,
      "Most tokens held (default: the model's own, at most 8192, less where the budget is short)");
  command.add_option("--batch", batch,
                     "Tokens of a prompt read in one go (default: 512, less where the budget is short)");
  command.add_option("--kv", kv,
                     "Type of the KV cache: " + std::string(kv::KvTypeNames()) +
                         " (default: f16, fewer bits where the budget is short)");
  command.add_option("--kv-k", kv_k, "Type of its keys alone (also -ctk)");
  command.add_option("--kv-v", kv_v, "Type of its values alone (also -ctv)");
  command.add_option("--overflow", overflow,
                     "When the context is full: stop, window (the first tokens and the newest stay) or heavy "
                     "(and those that "
                     "drew the most attention); chat goes on with window, everything else stops");
  command.add_option("--window", window,
                     "With window: so many of the newest tokens (default: all that the context has)");
  command.add_option("--sinks", sinks, "With window and heavy: so many of the first tokens")
      ->capture_default_str();
  command.add_option(
      "--fusion", fusion,
      "Operators that run together: none, norm, qkv, attention or all, each with those before it; less than "
      "all shows what they save (default: all)");
  command.add_option("--override-kv", overrides,
                     "Change a metadata key: KEY=TYPE:VALUE, TYPE int, float, bool or str");
}

Result<EngineOptions> ModelFlags::Engine() const {
  EngineOptions options{.threads = threads, .kernels = kernels};
  if (!memory.empty()) {
    SLUICE_TRY_ASSIGN(options.memory_bytes, ParseSize(memory));
    if (options.memory_bytes == 0)
      return Fail(ErrorCode::kInvalidArgument, "--memory 0 leaves nothing to work with");
  }
  return options;
}

namespace {

Result<kv::Overflow> ParseOverflow(const std::string& name) {
  if (name == "stop") return kv::Overflow::kStop;
  if (name == "window") return kv::Overflow::kWindow;
  if (name == "heavy") return kv::Overflow::kHeavy;
  return Fail(ErrorCode::kInvalidArgument, "--overflow '{}': expected stop, window or heavy", name);
}

Result<kv::KvType> ParseKvType(const std::string& name) {
  if (const auto type = kv::KvTypeByName(name)) return *type;
  return Fail(ErrorCode::kInvalidArgument, "a KV cache of type '{}' does not run; expected one of {}", name,
              kv::KvTypeNames());
}

Result<std::optional<weights::Residency>> ParseResidency(const std::string& name) {
  if (name.empty() || name == "auto") return std::optional<weights::Residency>();
  for (const auto residency : {weights::Residency::kResident, weights::Residency::kPin,
                               weights::Residency::kLru, weights::Residency::kMmap}) {
    if (weights::ResidencyName(residency) == name) return std::optional(residency);
  }
  return Fail(ErrorCode::kInvalidArgument, "--residency '{}'; expected auto, resident, pin, lru or mmap",
              name);
}

}  // namespace

Result<ConversationOptions> ModelFlags::Conversation(kv::Overflow unsaid) const {
  ConversationOptions options{.context_length = context_length, .batch = batch, .overflow = unsaid};
  if (!overflow.empty() || window != 0) {
    SLUICE_TRY_ASSIGN(options.overflow, ParseOverflow(overflow.empty() ? "window" : overflow));
    if (window != 0 && options.overflow != kv::Overflow::kWindow)
      return Fail(ErrorCode::kInvalidArgument, "--window goes with --overflow window, not with {}", overflow);
  }
  if (!fusion.empty()) {
    const auto level = runtime::FusionByName(fusion);
    if (!level) {
      return Fail(ErrorCode::kInvalidArgument, "--fusion '{}'; expected none, norm, qkv, attention or all",
                  fusion);
    }
    options.fusion = *level;
  }
  options.window = window;
  options.sinks = sinks;
  const std::string& k = kv_k.empty() ? kv : kv_k;
  const std::string& v = kv_v.empty() ? kv : kv_v;
  if (!k.empty()) {
    SLUICE_TRY_ASSIGN(options.k_type, ParseKvType(k));
  }
  if (!v.empty()) {
    SLUICE_TRY_ASSIGN(options.v_type, ParseKvType(v));
  }
  return options;
}

Result<ModelOptions> ModelFlags::Model(const ConversationOptions& conversation) const {
  ModelOptions options{.overrides = overrides, .conversation = conversation, .strict = strict};
  SLUICE_TRY_ASSIGN(options.residency, ParseResidency(residency));
  if (!ring.empty()) {
    SLUICE_TRY_ASSIGN(options.store.ring_bytes, ParseSize(ring));
  }
  if (lru_blocks) options.store.lru_blocks = *lru_blocks;
  if (io == "uring") {
    options.store.backend = sluice::io::IoBackend::kUring;
  } else if (io == "pread") {
    options.store.backend = sluice::io::IoBackend::kPread;
  } else if (io == "buffered") {
    options.store.page_cache = weights::PageCache::kEmptyBehind;
  } else if (!io.empty() && io != "auto") {
    return Fail(ErrorCode::kInvalidArgument, "--io '{}'; expected auto, uring, pread or buffered", io);
  }
  // A flag of one mode beside another would silently do nothing.
  const bool may_stream = !options.residency || *options.residency == weights::Residency::kPin;
  if (!ring.empty() && !may_stream) {
    return Fail(ErrorCode::kInvalidArgument, "--ring belongs to --residency pin, not to {}", residency);
  }
  if (lru_blocks && options.residency != weights::Residency::kLru) {
    return Fail(ErrorCode::kInvalidArgument, "--lru-blocks belongs to --residency lru");
  }
  return options;
}

void SamplingFlags::AddTo(CLI::App& command) {
  const std::string group = "Sampling";
  command.add_option("--temp,--temperature", temperature, "0 = always the likeliest token")->group(group);
  command.add_option("--top-k", top_k, "Only the K likeliest (0 = off)")->group(group);
  command.add_option("--top-p", top_p, "Only the likeliest that together have this share (1 = off)")
      ->group(group);
  command.add_option("--min-p", min_p, "Only those with this share of the likeliest (0 = off)")->group(group);
  command.add_option("--typical,--typical-p", typical_p, "Locally typical sampling (1 = off)")->group(group);
  command.add_option("--repeat-penalty", repeat_penalty, "1 = off")->group(group);
  command.add_option("--repeat-last-n", repeat_last_n, "Tokens that the penalties look at (-1 = all)")
      ->group(group);
  command.add_option("--presence-penalty", presence_penalty, "0 = off")->group(group);
  command.add_option("--frequency-penalty", frequency_penalty, "0 = off")->group(group);
  command.add_option("--dry-multiplier", dry_multiplier, "Against repeating whole passages (0 = off)")
      ->group(group);
  command.add_option("--dry-base", dry_base)->group(group);
  command.add_option("--dry-allowed-length", dry_allowed_length)->group(group);
  command.add_option("--dry-penalty-last-n", dry_penalty_last_n)->group(group);
  command.add_option("-l,--logit-bias", logit_bias, "ID+VALUE or ID-VALUE, e.g. 15043-inf")->group(group);
  command.add_option("--seed", seed, "Same seed, same answer (default: drawn anew each time)")->group(group);
}

Result<double> ParseNumber(const std::string& text) {
  double value = 0;
  if (!ParseWholeFloating(std::string_view(text).substr(text.starts_with('+') ? 1 : 0), &value)) {
    return Fail(ErrorCode::kInvalidArgument, "'{}' is not a number", text);
  }
  return value;
}

Result<sample::SamplerOptions> SamplingFlags::Over(sample::SamplerOptions options) const {
  const auto set = [](auto& field, const auto& flag) {
    if (flag) field = *flag;
  };
  set(options.temperature, temperature);
  set(options.top_k, top_k);
  set(options.top_p, top_p);
  set(options.min_p, min_p);
  set(options.typical_p, typical_p);
  set(options.repeat_penalty, repeat_penalty);
  set(options.repeat_last_n, repeat_last_n);
  set(options.presence_penalty, presence_penalty);
  set(options.frequency_penalty, frequency_penalty);
  set(options.dry_multiplier, dry_multiplier);
  set(options.dry_base, dry_base);
  set(options.dry_allowed_length, dry_allowed_length);
  set(options.dry_penalty_last_n, dry_penalty_last_n);
  if (seed) options.seed = seed;
  for (const std::string& text : logit_bias) {
    int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    const std::string rest(end, text.data() + text.size());
    if (error != std::errc() || rest.size() < 2 || (rest[0] != '+' && rest[0] != '-')) {
      return Fail(ErrorCode::kInvalidArgument, "--logit-bias '{}': expected ID+VALUE or ID-VALUE", text);
    }
    SLUICE_TRY_ASSIGN(const double bias, ParseNumber(rest));
    options.logit_bias.push_back({id, bias});
  }
  return options;
}

void ObserveFlags::AddTo(CLI::App& command) {
  command.add_flag("--stats", stats, "On stderr: memory beside the plan, reads and waits, what bounded the speed");
  command.add_option("--trace", trace, "Write a trace to this file, for `sluice plot`, Perfetto or chrome://tracing");
}

void AnswerFlags::AddTo(CLI::App& command) {
  command.add_option("-n,--max-tokens,--predict", max_tokens,
                     "Most tokens of an answer (default: what the context has "
                     "left, at most 4096)");
  command.add_option("--stop", stop, "End the answer before this text (may be repeated)");
  command.add_flag("--ignore-eos", ignore_eos, "Go on where the model would end its answer");
  command.add_option("--think", think, "For models that reason: on, off, or the most tokens of thought");
}

Result<AnswerOptions> AnswerFlags::Answer() const {
  AnswerOptions options{.max_tokens = max_tokens, .stop = stop, .ignore_end_of_turn = ignore_eos};
  if (max_tokens < 0) options.max_tokens = INT64_MAX;  // -1, as elsewhere: until the context is full
  if (!think.empty()) {
    SLUICE_TRY(ParseThinking("--think", think, &options));
  }
  return options;
}

Status ParseThinking(std::string_view flag, const std::string& value, AnswerOptions* options) {
  int64_t budget = -1;
  if (value != "on" && value != "off") {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), budget);
    if (error != std::errc() || end != value.data() + value.size() || budget < 0) {
      return Fail(ErrorCode::kInvalidArgument, "{} '{}': expected on, off or a number of tokens", flag,
                  value);
    }
  }
  options->thinking = value == "off" || budget == 0 ? chat::Thinking::kOff : chat::Thinking::kOn;
  options->think_budget = budget;
  return {};
}

Result<OpenedModel> OpenModel(const ModelFlags& flags, const ConversationOptions& conversation, const OpenOptions& open) {
  SLUICE_TRY_ASSIGN(EngineOptions engine_options, flags.Engine());
  SLUICE_TRY_ASSIGN(ModelOptions options, flags.Model(conversation));
  SLUICE_TRY_ASSIGN(const std::string path, ResolveModel(flags.model));
  engine_options.log = [quiet = open.quiet](LogLevel level, const std::string& text) {
    if (!quiet || level == LogLevel::kWarning) Note(text);
  };
  OpenedModel opened;
  SLUICE_TRY_ASSIGN(opened.engine, Engine::Create(engine_options));
  if (!open.trace.empty()) {
    SLUICE_TRY_ASSIGN(opened.trace, Trace::Create(*opened.engine, open.trace));
  }
  const std::string cache = platform::FindUserFolders(platform::Environment::FromProcess()).cache;
  if (const auto device = MeasuredDevice(*opened.engine, cache))
    options.store = plan::Tuned(*device, options.store);
  options.reserve_bytes = open.reserve_bytes;
  SLUICE_TRY_ASSIGN(opened.model, Model::Open(*opened.engine, path, options));
  if (open.quiet) return opened;
  for (const std::string& warning : opened.model->warnings()) Note(Printable(warning));
  const plan::Plan& plan = opened.model->plan();
  for (const std::string& step : plan.steps) Note(step);
  // Who gave no budget, and lost nothing to it, is not told of it.
  if (!plan.steps.empty() || !flags.memory.empty() || !flags.residency.empty()) Note(plan::Summary(plan));
  return opened;
}

}  // namespace sluice::app
