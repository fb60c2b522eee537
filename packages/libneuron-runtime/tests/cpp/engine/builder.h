// Builds bound instructions by hand, for tests.
#pragma once

#include <bit>
#include <initializer_list>

#include "engine/instruction.h"

namespace neuron::engine::test {

inline Window window(uint32_t buffer, Dtype dtype, std::initializer_list<int64_t> strides, int64_t offset = 0) {
  Window w;
  w.buffer = buffer;
  w.dtype = dtype;
  w.offset = offset;
  int d = 0;
  for (const int64_t s : strides) w.strides[d++] = s;
  return w;
}

class Builder {
 public:
  Builder(Opcode opcode, std::initializer_list<int64_t> extents) {
    instruction.opcode = opcode;
    for (const int64_t e : extents) instruction.extents[instruction.rank++] = e;
    instruction.debug = "test";
  }
  // TILE in a mode; the last `reduced` extents are reduced.
  static Builder tile(std::initializer_list<int64_t> extents, TileMode mode = TileMode::MAP, int reduced = 0) {
    Builder b(Opcode::TILE, extents);
    b.instruction.params[0] = static_cast<int64_t>(mode);
    b.instruction.params[1] = reduced;
    return b;
  }

  int add(Window w) {
    instruction.windows.push_back(w);
    return static_cast<int>(instruction.windows.size()) - 1;
  }
  int load(Window w) { return load(add(w)); }
  int load(int pattern) {
    MicroOp& m = append(Micro::LOAD, schema::find(instruction.windows[pattern].dtype)->kind);
    m.a = static_cast<uint16_t>(pattern);
    return m.dst;
  }
  void store(int reg, Window w) { store(reg, add(w)); }
  void store(int reg, int pattern) {
    MicroOp m;
    m.op = Micro::STORE;
    m.kind = schema::find(instruction.windows[pattern].dtype)->kind;
    m.dst = static_cast<uint16_t>(pattern);
    m.a = static_cast<uint16_t>(reg);
    instruction.micro.push_back(m);
  }
  int constant(double x) { return imm(Kind::F32, ImmSource::LITERAL, std::bit_cast<uint64_t>(x)); }
  int constant(Kind kind, int64_t x) { return imm(kind, ImmSource::LITERAL, static_cast<uint64_t>(x)); }
  int scalar(Kind kind, int position) { return imm(kind, ImmSource::SCALAR, static_cast<uint64_t>(position)); }
  int op(Micro micro, Kind kind, int a, int b = 0, int c = 0) {
    MicroOp& m = append(micro, kind);
    m.a = static_cast<uint16_t>(a);
    m.b = static_cast<uint16_t>(b);
    m.c = static_cast<uint16_t>(c);
    return m.dst;
  }
  int f32(Micro micro, int a, int b = 0, int c = 0) { return op(micro, Kind::F32, a, b, c); }
  int convert(Kind from, Kind to, int a) {
    MicroOp& m = append(Micro::CONVERT, to);
    m.a = static_cast<uint16_t>(a);
    m.from = from;
    return m.dst;
  }
  int iota(int dimension) { return op(Micro::IOTA, Kind::I64, dimension); }
  int random(int word, int scalar) {
    MicroOp& m = append(Micro::RANDOM, Kind::I32);
    m.a = static_cast<uint16_t>(word);
    m.imm = static_cast<uint64_t>(scalar);
    return m.dst;
  }

  std::unique_ptr<Kernel> prepare() const { return neuron::prepare(instruction); }
  void run(std::initializer_list<void*> buffers, std::initializer_list<uint64_t> scalars = {}) const {
    prepare()->run({std::data(buffers), std::data(scalars)});
  }

  BoundInstruction instruction;

 private:
  MicroOp& append(Micro op, Kind kind) {
    MicroOp m;
    m.op = op;
    m.kind = kind;
    m.dst = static_cast<uint16_t>(next_++);
    instruction.micro.push_back(m);
    return instruction.micro.back();
  }
  int imm(Kind kind, ImmSource source, uint64_t bits) {
    MicroOp& m = append(Micro::CONST, kind);
    m.source = source;
    m.imm = bits;
    return m.dst;
  }
  int next_ = 0;
};

}  // namespace neuron::engine::test
