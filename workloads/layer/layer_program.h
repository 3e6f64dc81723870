// What a layer of a decode step consists of, as data: operators of a rank and exchanges between ranks, in the
// order of a microbatch, each with the stream that has it. Whoever fills it decides what a layer is;
// layer_run.h runs it and knows no model.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "workloads/kernels/cube_run.h"
#include "workloads/layer/layer_setting.h"
#include "workloads/operators/collective.h"

namespace cm384::studies {

// A microbatch in one of the layers, on a rank.
struct LayerSpot {
  std::size_t part = 0, rank = 0;  // part: layer x microbatches + microbatch
};

// A launch on a rank, on so many AIVs of its stream.
struct ExchangeLaunch {
  const char* kernel = "";
  std::uint64_t arguments = 0;
  int aivs = 0;
};

// Where exchanges are placed; `memories` belong to whoever runs them, and outlive the run.
struct ExchangeSite {
  host::Runtime& runtime;
  const std::vector<int>& dies;  // of rank 0, 1, ...
  std::deque<operators::RankMemory>& memories;
};

// Ranks that have a step: all, or of two kinds those with tokens, or those with experts.
enum class LayerRanks { all, tokens, experts };

// One or several kernels that follow each other in a stream.
struct LayerStep {
  std::vector<std::string> names;  // of the kernels
  int half = 0;                    // 0: of the stream with attention, 1: of the other one
  LayerRanks ranks = LayerRanks::all;
  // Operators of a rank that have a memory of their own. Empty: an exchange.
  std::function<Stages(LayerSpot)> make{};
  // Ranks that are not in detail replay what one of this size did, on groups of cores alone. Empty: firmware
  // on all ranks.
  std::function<std::string(LayerSpot)> size{};
  // What of one kind takes from others and gives to them as any other of it; empty: all alike.
  std::function<int(LayerSpot)> kind{};
  // So short that all ranks run its firmware; only where ranks follow others it is replayed as well, so that
  // theirs takes as long as one beside other work does.
  bool is_short = false;
  // Of an exchange: places it for a part, and gives the launch of each rank.
  std::function<std::vector<ExchangeLaunch>(std::size_t part, const ExchangeSite&)> exchange{};
};

struct LayerProgram {
  std::vector<LayerStep> steps;
  // Rows that dispatch brings to each rank, by part; none without experts.
  std::vector<std::vector<std::uint32_t>> rows;
  double new_copies = 0;  // most that a rank loads at a renewal, mean over layers
};

// Of attention and experts (dispatch, combine), or of attention and a dense network, where the setting has no
// experts. Reads the trace of the routing, if it is one.
LayerProgram make_layer_program(const LayerSetting& setting, std::uint64_t seed);

// Slices of a width that the kernel holds, of a network so wide.
int dense_slices(std::uint32_t width);
// How `parts` slices are summed in pairs: slices of each addition.
std::vector<int> additions_of(int slices);

}  // namespace cm384::studies
