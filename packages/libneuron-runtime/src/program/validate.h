// The load phase's rules: everything about a program that does not depend on slots.
#pragma once

#include "program/program.h"

namespace neuron {

// Throws Error(NRT_INVALID) naming the record, what was found, what was expected and the rule. Afterwards every index,
// offset and enumerator of every record is legal, and pattern uses are known.
void validate(Program& program);

// A micro-program (micro.cpp). Marks reads and writes of the instruction's patterns in `uses`.
void validate_micro(const Program& program, size_t number, const schema::InstructionRecord& instruction,
                    std::span<uint8_t> uses);

// What one opcode asks of its patterns and params, whose types are checked already (opcode.cpp). Completes `uses`.
void validate_opcode(const Program& program, size_t number, const schema::InstructionRecord& instruction,
                     std::span<uint8_t> uses);

// Number of strides that a pattern of an instruction has.
uint32_t stride_count(const schema::InstructionRecord& instruction, size_t pattern);

}  // namespace neuron
