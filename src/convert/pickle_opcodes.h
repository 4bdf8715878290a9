// Opcodes of Python's pickles. Source: the pickletools module of Python.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::convert {

// Those that a state dict needs.
enum class Opcode : uint8_t {
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinUnicode = 'X',
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kMark = '(',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kGlobal = 'c',
  kReduce = 'R',
  kBuild = 'b',
  kProto = 0x80,
  kStop = '.',
  kBinPersId = 'Q',
};

// For messages: "INST (0x69)"; of every opcode up to protocol 5, "0xff" for a byte that is none.
std::string OpcodeName(uint8_t opcode);

}  // namespace sluice::convert
