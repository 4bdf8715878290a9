// Hostile templates, by data/hostile.json: every one ends, and none takes more memory than it may.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "chat/chat_template.h"
#include "chat/test_data.h"

namespace {

// All memory of this program that comes from operator new.
std::atomic<size_t> live_bytes{0};
std::atomic<size_t> peak_bytes{0};

void* AllocateOrNull(size_t size) noexcept {
  void* p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) return nullptr;
  const size_t now = live_bytes += malloc_usable_size(p);
  if (now > peak_bytes) peak_bytes = now;
  return p;
}

void* Allocate(size_t size) {
  void* p = AllocateOrNull(size);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void Deallocate(void* p) {
  if (p != nullptr) live_bytes -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
// Sanitizers have a non-throwing one of their own, which doesn't call the one above.
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size); }
void operator delete(void* p) noexcept { Deallocate(p); }
void operator delete[](void* p) noexcept { Deallocate(p); }
void operator delete(void* p, size_t) noexcept { Deallocate(p); }
void operator delete[](void* p, size_t) noexcept { Deallocate(p); }

namespace sluice::chat {
namespace {

std::string Assemble(const Json& pieces) {
  std::string source;
  for (const Json& piece : pieces) {
    if (piece.is_string()) {
      source += piece.get<std::string>();
    } else {
      const auto text = piece[0].get<std::string>();
      for (int i = piece[1].get<int>(); i > 0; --i) source += text;
    }
  }
  return source;
}

const Json& HostileCases() {
  static const Json data = ReadData("hostile.json");
  return data["cases"];
}

TEST(Limits, HostileTemplatesEndWithinBounds) {
  constexpr size_t kMostBytes = 100u << 20;
  for (const Json& entry : HostileCases()) {
    const auto name = entry[0].get<std::string>();
    const std::string source = Assemble(entry[1]);
    const size_t before = live_bytes;
    peak_bytes = before;
    const Result<std::string> text = RenderText(source, R"({"u": "user"})", 0);
    EXPECT_LT(peak_bytes - before, kMostBytes) << name;
    EXPECT_EQ(text.has_value(), entry[2] == "ok") << name << ": " << (text ? "" : text.error().message);
    if (!text) {
      EXPECT_LT(text.error().message.size(), 300u) << name;
    }
  }
}

// The probe at load is a rendering like others: a hostile template is replaced, not suffered.
TEST(Limits, HostileTemplatesAreReplacedAtLoad) {
  for (const Json& entry : HostileCases()) {
    const std::string source = Assemble(entry[1]);
    const ChatTemplate chat = ChatTemplate::Create({.text = source});
    EXPECT_EQ(chat.origin(), "chatml") << entry[0];
    EXPECT_EQ(chat.warnings().size(), 1u) << entry[0];
  }
}

#if !defined(SLUICE_SANITIZED) && defined(__OPTIMIZE__)
// Deep recursion is refused before it needs much stack: threads of phones have 1 MiB.
TEST(Limits, NestingFitsASmallStack) {
  struct Job {
    std::string source;
    bool ok = false;
  };
  for (const char* name :
       {"rec", "rec2", "parens", "lists", "ifs", "adds", "callblock", "nested for", "selfl", "recloop"}) {
    std::string source;
    for (const Json& entry : HostileCases()) {
      if (entry[0] == name) source = Assemble(entry[1]);
    }
    ASSERT_FALSE(source.empty()) << name;
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 768 * 1024), 0);
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
      (void)RenderText(*static_cast<std::string*>(argument));
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, run, &source), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
  }
}
#endif

TEST(Limits, LongConversationsStillFit) {
  // Work that grows with the square of the conversation is common in real templates.
  std::string messages = "[";
  for (int i = 0; i < 1000; ++i) {
    if (i > 0) messages += ", ";
    messages += R"({"role": "user", "content": ")" + std::string(200, 'x') + "\"}";
  }
  messages += "]";
  const Result<std::string> text = RenderText(
      "{% set ns = namespace(text='') %}{% for m in messages %}{% set rest = messages[loop.index0:] %}"
      "{% set ns.text = ns.text ~ '<|' ~ m.role ~ '|>' ~ m.content|trim %}{% endfor %}{{ ns.text|length }}",
      R"({"messages": )" + messages + "}");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, std::to_string(1000 * (200 + 8)));
}

TEST(Limits, EachBoundIsItsOwn) {
  jinja::Limits limits;
  limits.steps = 50;
  EXPECT_EQ(RenderText("{% for i in range(100) %}{{ i }}{% endfor %}", "{}", {}, limits).error().code,
            ErrorCode::kResourceExhausted);
  limits = {};
  limits.output_bytes = 10;
  EXPECT_FALSE(RenderText("{{ 'a' * 11 }}", "{}", {}, limits));
  EXPECT_TRUE(RenderText("{{ 'a' * 10 }}", "{}", {}, limits));
  limits = {};
  limits.range_items = 3;
  EXPECT_TRUE(RenderText("{{ range(3) }}", "{}", {}, limits));
  EXPECT_FALSE(RenderText("{{ range(4) }}", "{}", {}, limits));
  limits = {};
  limits.template_bytes = 3;
  EXPECT_TRUE(RenderText("abc", "{}", {}, limits));
  EXPECT_FALSE(RenderText("abcd", "{}", {}, limits));
  limits = {};
  limits.live_bytes = 20'000;
  EXPECT_FALSE(RenderText("{% set x = 'a' * 30000 %}", "{}", {}, limits));
  // What is let go is given back.
  EXPECT_TRUE(RenderText("{% for i in range(50) %}{% set x = 'a' * 5000 %}{% endfor %}", "{}", {}, limits));
}

}  // namespace
}  // namespace sluice::chat
