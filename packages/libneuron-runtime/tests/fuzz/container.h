// NEFF files around programs, in the ways that the reader knows and in some that it refuses.
#pragma once

#include <span>
#include <vector>

#include "model.h"

namespace neuron::fuzz {

// What one file holds. False when it has no program that can be taken apart.
bool unpack(std::span<const std::byte> file, Model& model);

// A file of the program and the launch; rarely of damaged ones, compressed, with further members or a strange header.
std::vector<std::byte> pack(std::vector<std::byte> program, const LaunchInput& launch, Random& random);

// The sums and sizes of a file whose bytes were changed: data_size, the checksum of each tar header, the hash.
void repair_container(std::vector<std::byte>& file);

}  // namespace neuron::fuzz
