#include "convert/pickle.h"

#include <gmock/gmock.h>

#include "convert/pytorch_builder.h"

namespace sluice::convert {
namespace {

using namespace pickled;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::string_literals;

Result<std::vector<PickledTensor>> Read(const std::string& pickle) {
  return ReadStateDict(std::as_bytes(std::span(pickle)));
}
std::string ErrorOf(const std::string& pickle) {
  const auto tensors = Read(pickle);
  return tensors ? "read" : tensors.error().message;
}
std::string Item() { return Text("w") + Tensor(Storage("FloatStorage", "0", 6), 0, {2, 3}, {3, 1}); }

TEST(PickleTest, ReadsTensors) {
  const auto tensors =
      Read(Dict(Item() + Text("v") + Tensor(Storage("BFloat16Storage", "7", 9), 4, {5}, {1})));
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "w");
  EXPECT_EQ((*tensors)[0].type, ElementType::kF32);
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(2, 3));
  EXPECT_THAT((*tensors)[0].strides, ElementsAre(3, 1));
  EXPECT_EQ((*tensors)[1].type, ElementType::kBF16);
  EXPECT_EQ((*tensors)[1].storage, "7");
  EXPECT_EQ((*tensors)[1].storage_elements, 9u);
  EXPECT_EQ((*tensors)[1].first, 4u);
}

// As Python 3 and PyTorch 1.13 pickle two tensors of one storage, a parameter and the notes of a state dict.
TEST(PickleTest, ReadsWhatTorchWrites) {
  const std::string pickle =
      Program(Global("collections", "OrderedDict"), "q\0"s, ")Rq\1(", Text("a"), "q\2",
              Global("torch._utils", "_rebuild_tensor_v2"), "q\3((", Text("storage"), "q\4",
              Global("torch", "HalfStorage"), "q\5", Text("0"), "q\6", Text("cpu"),
              "q\7K\6tq\x08QK\0K\2K\3\x86q\x09K\3K\1\x86r\x0a\0\0\0\x89h\0)Rtq\x0cRq\x0d"s, Text("b"),
              "h\3((h\4h\5h\6h\7K\6tQM\3\0K\3\x85J\1\0\0\0\x85\x89h\0)RtR"s, Text("c"),
              Global("torch._utils", "_rebuild_parameter"), "j\x0d\0\0\0\x88h\0)R\x87Ru}"s, Text("_metadata"),
              "h\0)R"s, Text(""), "}", Text("version"), "K\1sssb");
  const auto tensors = Read(pickle);
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_THAT((*tensors)[0].shape, ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[1].first, 3u);
  EXPECT_THAT((*tensors)[1].shape, ElementsAre(3));
  EXPECT_EQ((*tensors)[1].storage, (*tensors)[0].storage);
  EXPECT_EQ((*tensors)[2].name, "c");
  EXPECT_THAT((*tensors)[2].shape, ElementsAre(2, 3));
}

TEST(PickleTest, NothingIsRun) {
  EXPECT_THAT(ErrorOf(Program(Global("os", "system"), Tuple(Text("true")), "R")),
              HasSubstr("byte 2: asks for os.system"));
  EXPECT_THAT(ErrorOf(Dict(Item() + Text("x") + Global("torch", "ComplexFloatStorage"))),
              HasSubstr("torch.ComplexFloatStorage"));
  EXPECT_THAT(ErrorOf(Program(Global("torch", "FloatStorage"), ")R")), HasSubstr("made rather than named"));
  EXPECT_THAT(ErrorOf(Program(Text("x"), ")R")), HasSubstr("what is called is text; expected a global"));
}

// Every opcode that does more than a state dict needs is refused by its name and place.
TEST(PickleTest, OtherOpcodesAreNamed) {
  const std::pair<const char*, const char*> refused[] = {
      {"i", "INST (0x69)"},      {"o", "OBJ (0x6f)"},
      {"\x81", "NEWOBJ (0x81)"}, {"\x93", "STACK_GLOBAL (0x93)"},
      {"\x82", "EXT1 (0x82)"},   {"P", "PERSID (0x50)"},
      {"2", "DUP (0x32)"},       {"G", "BINFLOAT (0x47)"},
      {"\xff", "opcode 0xff"}};
  for (const auto& [opcode, name] : refused) {
    const std::string error = ErrorOf(Program("}", opcode));
    EXPECT_THAT(error, HasSubstr(name));
    EXPECT_THAT(error, HasSubstr("byte 3")) << error;
  }
  EXPECT_THAT(ErrorOf("\x80\x04}."), HasSubstr("protocol 2"));
}

TEST(PickleTest, BrokenPickles) {
  const std::pair<std::string, const char*> broken[] = {
      {"", "a pickle at byte 0"},
      {"\x80\x02", "an opcode at byte 2"},
      {Program(""), "the stack is empty"},
      {Program("t"), "there is no mark"},
      {Program("}(K\1u"), "a key without a value"},
      {Program("(s"), "the stack is empty"},
      {Program("h\5"), "nothing was remembered as 5"},
      {Program("X\5\0\0\0a"s), "needs 5 bytes"},
      {Program("X\xff\xff\xff\xff"), "a text of 4294967295 bytes"},
      {Program("c", std::string(600, 'x')), "does not end within 512 bytes"},
      {Program("\x8a\x09", "123456789"), "a number of 9 bytes"},
      {Program("K\1"), "the file's object is a number; expected a dictionary"},
      {Dict(Item() + Item()), "tensor w is there twice"},
      {Dict(Text("step") + "K\5"), "step is a number; expected a tensor"},
      {Dict(Text("model") + "}"), "model is a dictionary; expected a tensor"},
      {Dict(Number(1) + Tensor(Storage("FloatStorage", "0", 1), 0, {1}, {1})), "a name is a number"},
      {Dict(Text("w") + Tensor(Storage("FloatStorage", "0", 1), 0, {1, 1}, {1})),
       "2 dimensions with 1 strides"},
      {Dict(Text("w") + Tensor(Storage("FloatStorage", "0", 1), ~uint64_t{0}, {1}, {1})), "at element -1"},
      {Dict(Text("w") + Tensor(Storage("FloatStorage", "0", 1), 0, {~uint64_t{0}}, {1})), "the number -1"},
      {Dict(Text("w") + Tensor(Storage("FloatStorage", std::string(100, '0'), 1), 0, {1}, {1})),
       "key of 100 bytes"},
      {Dict(Text("w") + Tuple(Text("module")) + "Q"), "persistent id of 1 parts"}};
  for (const auto& [pickle, expected] : broken) EXPECT_THAT(ErrorOf(pickle), HasSubstr(expected));
}

// Objects may hold one another, or be copied without end: time and memory stay those of the bytes.
TEST(PickleTest, LoopsAndBombsAreHarmless) {
  EXPECT_THAT(ErrorOf(Program("}q\1", Text("self"), "h\1s")), HasSubstr("self is a dictionary"));
  std::string bomb = ")q\1";
  for (int i = 0; i < 100'000; ++i) bomb += "h\1h\1\x86q\1";
  EXPECT_THAT(ErrorOf(Program(bomb)), HasSubstr("the file's object is a tuple"));
  EXPECT_THAT(ErrorOf(Program(std::string((1 << 20) + 1, ')'))), HasSubstr("more than 1048576 objects"));
}

}  // namespace
}  // namespace sluice::convert
