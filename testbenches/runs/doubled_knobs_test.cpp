// Every rate of the machine in closed form: where a knob binds, twice its value halves the part of the time
// that it decides, within 2 %. The rest of the time does not depend on it: with t(x) = a + b / x the time
// that the first doubling saves is twice that of the second. Of an interval or a latency, t(x) = a + b x.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text/parameter_list.h"
#include "hw/machine.h"
#include "testbenches/runs/knob_scenarios.h"
#include "testbenches/runs/knob_table.h"
#include "testbenches/runs/machine_run.h"

namespace cm384::testing::doubled_knobs_test {
namespace {

enum class Form : char {
  rate,   // t = a + b / x
  time,   // t = a + b x
  whole,  // t = b / x: nothing else is in it
};

// So small that the knob binds at once, twice and four times the value.
struct Doubled {
  std::string_view key;
  double value;
  std::string_view unit, scenario, output;
  Form form = Form::rate;
  std::string_view given = "";
};

constexpr Doubled kDoubled[] = {
    // Cube cores: multiply-adds by type, alone and in a whole product, and what feeds and drains them.
    {"cube_core.macs_per_cycle.int8", 1024, "", "cube", "mmad"},
    {"cube_core.macs_per_cycle.bf16", 512, "", "cube", "mmad-f16"},
    {"cube_core.macs_per_cycle.fp32", 128, "", "cube", "mmad-f32"},
    {"cube_core.macs_per_cycle.int4", 2048, "", "cube", "mmad-s4"},
    {"cube_core.macs_per_cycle.bf16", 256, "", "gemm bf16", "kernel"},
    {"cube_core.l0a_bytes_per_cycle", 64, "", "cube", "load-a"},
    {"cube_core.l0b_bytes_per_cycle", 64, "", "cube", "load-b"},
    {"cube_core.table_bytes_per_cycle", 2, "", "cube", "table"},
    {"cube_core.fixpipe_bytes_per_cycle", 8, "", "cube", "fix"},
    // The on-die network, the L2 and HBM.
    {"on_die_network.hbm_read_bytes_per_cycle", 1, "", "core", "reads"},
    {"on_die_network.l2_read_bytes_per_cycle", 8, "", "hits 1", "kernel"},
    {"on_die_network.write_bytes_per_cycle", 1, "", "core", "writes"},
    {"on_die_network.realign_bytes_per_cycle", 1, "", "stream unaligned", "kernel"},
    {"on_die_network.cube_realign_bytes_per_cycle", 1, "", "stream l1-unaligned", "kernel"},
    {"on_die_network.external_bytes_per_cycle", 4, "", "p2p read npu", "bandwidth", Form::rate,
     "on_die_network.external_ports=1"},
    {"on_die_network.external_ports", 1, "", "p2p read npu", "bandwidth", Form::rate,
     "on_die_network.external_bytes_per_cycle=4"},
    {"l2.slices", 1, "", "hits 48", "kernel"},
    {"l2.slice_bandwidth", 10, "GB/s", "hits 48", "kernel"},
    {"hbm.bandwidth", 819.2, "GB/s", "more 64x2048", "kernel", Form::whole},
    {"hbm.bandwidth", 1638.4, "GB/s", "more 64x2048", "kernel", Form::whole},
    {"hbm.stacks", 2, "", "more 64x2048", "kernel", Form::whole},
    // The SDMA engine.
    {"sdma.channels", 1, "", "copies", "more", Form::whole, "host.call=10ns host.submit_latency=0ps"},
    {"sdma.bandwidth", 5, "GB/s", "streams", "read-bandwidth", Form::rate},
    {"sdma.read_outstanding", 8, "", "streams", "read-bandwidth", Form::rate},
    {"sdma.write_outstanding", 8, "", "streams", "write-bandwidth", Form::rate},
    // The Unified Bus: links to dies and between chips, ports, L2 chips, controllers, the link of a package.
    {"ub.link.bandwidth", 2, "GB/s", "p2p read npu", "bandwidth", Form::rate},
    {"ub.link.trunk_rate", 0.02, "", "p2p read npu inter", "bandwidth", Form::rate, "topology.l2_switches=4"},
    {"topology.sub_planes", 1, "", "p2p read npu", "bandwidth", Form::rate, "ub.link.bandwidth=2GB/s"},
    {"topology.l2_switches", 1, "", "p2p read npu inter", "bandwidth", Form::rate, "ub.link.trunk_rate=0.02"},
    {"ub.controller.read_outstanding", 24, "", "p2p read npu", "bandwidth", Form::rate},
    {"ub.controller.write_outstanding", 24, "", "p2p write npu", "bandwidth", Form::rate},
    {"ub.controller.read_interval", 20, "ns", "p2p read npu", "bandwidth", Form::time},
    {"ub.controller.write_interval", 20, "ns", "p2p write npu", "bandwidth", Form::time},
    {"ub.controller.target_read_interval", 20, "ns", "p2p read npu", "bandwidth", Form::time},
    {"ub.controller.target_write_interval", 20, "ns", "p2p write npu", "bandwidth", Form::time},
    {"package_link.bandwidth", 5, "GB/s", "p2p read sibling-die", "bandwidth", Form::rate},
    {"cpu.bandwidth", 5, "GB/s", "p2p read cpu", "bandwidth", Form::rate},
    {"cpu.memory_bandwidth", 5, "GB/s", "p2p read cpu", "bandwidth", Form::rate},
    // The RDMA plane.
    {"rdma.link_rate", 1, "GB/s", "rdma", "write", Form::rate},
    {"rdma.core_rate", 1, "GB/s", "rdma", "apart-write", Form::rate, "topology.supernodes=2"},
    // Accelerators without cores.
    {"transfer_engine.bandwidth", 5, "GB/s", "transfer", "far"},
    {"transfer_engine.memory_bandwidth", 5, "GB/s", "transfer", "local"},
    {"transfer_engine.outstanding", 2, "", "transfer", "far"},
    {"transfer_engine.engines", 1, "", "transfer", "many"},
    {"processor.unit_bandwidth", 1, "GB/s", "messages", "dispatch"},
    {"processor.bf16_tflops", 10, "", "units", "bf16"},
    {"processor.fp8_tflops", 10, "", "units", "fp8"},
    {"processor.int8_tops", 10, "", "units", "int8"},
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

double time_of(const Doubled& knob, double value) {
  Changes changes = words_of(knob.given);
  changes.push_back(fmt::format("{}={:g}{}", knob.key, value, knob.unit));
  const double output = run_scenario(std::string(knob.scenario), changes).at(std::string(knob.output));
  // Rates are in the output of a copy, times elsewhere.
  return knob.output.ends_with("bandwidth") || knob.scenario == "rdma" ? 1 / output : output;
}

TEST(DoubledKnobs, HalveWhatTheyBind) {
  for (const Doubled& knob : kDoubled) {
    const std::string what = fmt::format("{} of {} {}", knob.key, knob.scenario, knob.output);
    try {
      const double once = time_of(knob, knob.value), twice = time_of(knob, 2 * knob.value);
      if (knob.form == Form::whole) {
        EXPECT_NEAR(once / twice, 2, 0.04) << what;
        continue;
      }
      const double four_times = time_of(knob, 4 * knob.value);
      const double ratio = knob.form == Form::time ? (four_times - twice) / (twice - once)
                                                   : (once - twice) / (twice - four_times);
      EXPECT_NEAR(ratio, 2, 0.04) << what << ": " << once << ", " << twice << ", " << four_times;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
}

// Vector width: a repeat is 256 B, and takes the slope of its instruction.
TEST(DoubledKnobs, VectorRepeatsTakeTheirSlope) {
  std::size_t number = 0;
  for (const std::string_view row : vector_rows()) {
    const std::string output = fmt::format("vector{}", number++);
    const auto cycles = [&](int slope) {
      return run_scenario("core", {fmt::format("vector_core.{}.slope={}", row, slope)}).at(output);
    };
    EXPECT_NEAR((cycles(80) - cycles(40)) / (cycles(40) - cycles(20)), 2, 0.04) << row;
  }
}

// Of rows that are read again and again the L2 keeps all or, once they are more than it holds, least recently
// used lines are those that are needed next: the most that it keeps doubles with its size.
TEST(DoubledKnobs, TheL2KeepsTwiceAsMuch) {
  constexpr std::uint64_t kRow = 24576;
  const auto kept = [](int mebibytes) {
    const std::uint64_t capacity = static_cast<std::uint64_t>(mebibytes) << 20;
    std::uint64_t most = 0;
    for (int sixteenths = 12; sixteenths <= 20; ++sixteenths) {
      const std::uint64_t rows = capacity * static_cast<std::uint64_t>(sixteenths) / 16 / kRow;
      const studies::StreamReading reading = run_stream(
          studies::StreamShape{
              .name = "kept", .block_count = 4, .block_bytes = 2048, .rows = rows, .passes = 4},
          {fmt::format("l2.capacity={}MiB", mebibytes)});
      if (reading.l2_hit_rate > 0.7) most = rows * kRow;
    }
    return static_cast<double>(most);
  };
  const double once = kept(6), twice = kept(12);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(twice / once, 2, 0.04);
}

// Every rate: bytes a second, bytes or multiply-adds a cycle, operations a second.
TEST(DoubledKnobs, EveryRateHasARow) {
  std::set<std::string_view> rows;
  for (const Doubled& knob : kDoubled) rows.insert(knob.key);
  hw::Machine machine = hw::load_machine(std::string(hw::kDefaultMachine));
  for (const hw::Parameter& parameter : hw::list_parameters(machine)) {
    const std::string_view key = parameter.key;
    const bool rate = std::holds_alternative<Bandwidth*>(parameter.value) ||
                      key.find("per_cycle") != key.npos || key.ends_with("_tflops") || key.ends_with("_tops");
    if (rate) {
      EXPECT_TRUE(rows.contains(key)) << key;
    }
  }
}

}  // namespace
}  // namespace cm384::testing::doubled_knobs_test
