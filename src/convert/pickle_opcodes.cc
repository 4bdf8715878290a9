#include "convert/pickle_opcodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace sluice::convert {

namespace {

struct Named {
  uint8_t opcode;
  std::string_view name;
};
constexpr Named kNames[] = {{'I', "INT"},
                            {'J', "BININT"},
                            {'K', "BININT1"},
                            {'M', "BININT2"},
                            {'L', "LONG"},
                            {0x8a, "LONG1"},
                            {0x8b, "LONG4"},
                            {'S', "STRING"},
                            {'T', "BINSTRING"},
                            {'U', "SHORT_BINSTRING"},
                            {'B', "BINBYTES"},
                            {'C', "SHORT_BINBYTES"},
                            {0x8e, "BINBYTES8"},
                            {0x96, "BYTEARRAY8"},
                            {0x97, "NEXT_BUFFER"},
                            {0x98, "READONLY_BUFFER"},
                            {'N', "NONE"},
                            {0x88, "NEWTRUE"},
                            {0x89, "NEWFALSE"},
                            {'V', "UNICODE"},
                            {0x8c, "SHORT_BINUNICODE"},
                            {'X', "BINUNICODE"},
                            {0x8d, "BINUNICODE8"},
                            {'F', "FLOAT"},
                            {'G', "BINFLOAT"},
                            {']', "EMPTY_LIST"},
                            {'a', "APPEND"},
                            {'e', "APPENDS"},
                            {'l', "LIST"},
                            {')', "EMPTY_TUPLE"},
                            {'t', "TUPLE"},
                            {0x85, "TUPLE1"},
                            {0x86, "TUPLE2"},
                            {0x87, "TUPLE3"},
                            {'}', "EMPTY_DICT"},
                            {'d', "DICT"},
                            {'s', "SETITEM"},
                            {'u', "SETITEMS"},
                            {0x8f, "EMPTY_SET"},
                            {0x90, "ADDITEMS"},
                            {0x91, "FROZENSET"},
                            {'0', "POP"},
                            {'2', "DUP"},
                            {'(', "MARK"},
                            {'1', "POP_MARK"},
                            {'g', "GET"},
                            {'h', "BINGET"},
                            {'j', "LONG_BINGET"},
                            {'p', "PUT"},
                            {'q', "BINPUT"},
                            {'r', "LONG_BINPUT"},
                            {0x94, "MEMOIZE"},
                            {0x82, "EXT1"},
                            {0x83, "EXT2"},
                            {0x84, "EXT4"},
                            {'c', "GLOBAL"},
                            {0x93, "STACK_GLOBAL"},
                            {'R', "REDUCE"},
                            {'b', "BUILD"},
                            {'i', "INST"},
                            {'o', "OBJ"},
                            {0x81, "NEWOBJ"},
                            {0x92, "NEWOBJ_EX"},
                            {0x80, "PROTO"},
                            {'.', "STOP"},
                            {0x95, "FRAME"},
                            {'P', "PERSID"},
                            {'Q', "BINPERSID"}};

}  // namespace

std::string OpcodeName(uint8_t opcode) {
  const auto* found = std::ranges::find(kNames, opcode, &Named::opcode);
  return found == std::end(kNames) ? fmt::format("{:#04x}", opcode)
                                   : fmt::format("{} ({:#04x})", found->name, opcode);
}

}  // namespace sluice::convert
