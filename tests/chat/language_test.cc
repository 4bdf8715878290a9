// The template language, by data/language.json: what Jinja gives, we give.
#include <gmock/gmock.h>

#include "chat/test_data.h"

namespace sluice::chat {
namespace {

using testing::HasSubstr;

TEST(Language, GivesWhatJinjaGives) {
  const Json data = ReadData("language.json");
  const std::string context = data["context"].dump();
  for (const Json& entry : data["cases"]) {
    const auto source = entry[0].get<std::string>();
    const Result<std::string> text = RenderText(source, context);
    ASSERT_TRUE(text) << source << "\n" << text.error().message;
    EXPECT_EQ(*text, entry[1].get<std::string>()) << source;
  }
}

TEST(Language, RefusesWithLineAndColumn) {
  const Json data = ReadData("language.json");
  const std::string context = data["context"].dump();
  for (const Json& entry : data["errors"]) {
    const auto source = entry[0].get<std::string>();
    const Result<std::string> text = RenderText(source, context);
    ASSERT_FALSE(text) << source << "\n" << *text;
    EXPECT_EQ(text.error().message, entry[1].get<std::string>()) << source;
  }
}

TEST(Language, ErrorsPointIntoTheSource) {
  const Result<std::string> text = RenderText("{# ü #}\r\n{% set x = 1 %}\r\n  é {{ x + 'a' }}");
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("template line 3, column 10: '+'"));
}

TEST(Language, RaiseExceptionGivesOnlyTheTemplatesOwnText) {
  const Result<std::string> text =
      RenderText("\n\n{% if true %}{{ raise_exception('Roles must alternate') }}{% endif %}");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(text.error().message, "Roles must alternate");
}

TEST(Language, KindsOfErrors) {
  const std::pair<const char*, ErrorCode> cases[] = {
      {"{{ x | nosuch }}", ErrorCode::kUnsupported},
      {"{% if %}", ErrorCode::kUnsupported},
      {"{% import 'a' as b %}", ErrorCode::kUnsupported},
      {"{{ 1 + 'a' }}", ErrorCode::kCorrupt},
      {"{{ ''.__class__ }}", ErrorCode::kUnsupported},
      {"{{ raise_exception('x') }}", ErrorCode::kInvalidArgument},
      {"{{ range(10**9) }}", ErrorCode::kResourceExhausted}};
  for (const auto& [source, code] : cases) {
    const Result<std::string> text = RenderText(source);
    ASSERT_FALSE(text) << source;
    EXPECT_EQ(text.error().code, code) << source << ": " << text.error().message;
  }
}

TEST(Language, UnknownNamesAreKnownBeforeTheyAreReached) {
  const Result<jinja::Template> parsed =
      jinja::Parse("{% if false %}\n{{ x | nosuch is strange }}{% endif %}ok");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->unknown_names, testing::ElementsAre("line 2, column 8: no filter named 'nosuch'",
                                                          "line 2, column 18: no test named 'strange'"));
  EXPECT_EQ(*RenderText("{% if false %}{{ x | nosuch }}{% endif %}ok"), "ok");
}

TEST(Language, TheClockIsHandedIn) {
  // 2024-02-29 23:05:09
  constexpr int64_t kTime = 1709247909;
  EXPECT_EQ(*RenderText("{{ strftime_now('%Y-%m-%d %H:%M:%S %A %a %B %b %j %p %I %y %e %-d %% %Q') }}", "{}",
                        kTime),
            "2024-02-29 23:05:09 Thursday Thu February Feb 060 PM 11 24 29 29 % %Q");
  EXPECT_EQ(*RenderText("{{ strftime_now('%F %T') }}", "{}", -1), "1969-12-31 23:59:59");
  EXPECT_EQ(*RenderText("{{ strftime_now('%F') }}", "{}", 951782400), "2000-02-29");
  EXPECT_EQ(*RenderText("{{ strftime_now is defined }}", "{}", 0), "True");
  EXPECT_EQ(*RenderText("{{ strftime_now is defined }}"), "False");
}

TEST(Language, GenerationTagsOnlyMarkText) {
  EXPECT_EQ(*RenderText("a{% generation %}b{% endgeneration %}c"), "abc");
}

TEST(Language, JsonThatIsRead) {
  EXPECT_EQ(*RenderText(R"({{ '{"a": [1, 2.0, null, "ü\\n"], "b": 12345678901234567890}' | from_json }})"),
            "{'a': [1, 2.0, None, 'ü\\n'], 'b': 1.2345678901234567e+19}");
  EXPECT_FALSE(RenderText("{{ '{' | from_json }}"));
}

TEST(Language, StrayBytesPassThrough) {
  // Not UTF-8: counted one by one, never changed.
  jinja::Limits limits;
  jinja::Heap heap(limits);
  const jinja::Text text = *heap.NewText("a\xff\xe4\xbd\xc3\xa9", false);
  jinja::Dict* context = *heap.NewDict();
  ASSERT_TRUE(heap.Set(context, "s", jinja::Value(text)));
  const jinja::Template parsed =
      *jinja::Parse("{{ s|length }} {{ s }} {{ s|upper }} {{ s[1] }} {{ s.strip() }} {{ s|tojson }}");
  const Result<jinja::Text> out = jinja::Interpreter(parsed, limits, &heap, std::nullopt).Run(*context);
  ASSERT_TRUE(out);
  EXPECT_EQ(
      out->view(),
      "5 a\xff\xe4\xbd\xc3\xa9 A\xff\xe4\xbd\xc3\x89 \xff a\xff\xe4\xbd\xc3\xa9 \"a\xff\xe4\xbd\xc3\xa9\"");
}

}  // namespace
}  // namespace sluice::chat
