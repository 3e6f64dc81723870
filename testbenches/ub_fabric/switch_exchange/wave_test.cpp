// FST waves of RTL chips, read back with GTKWave's own reader: the signals are there, times are simulated
// time, nothing else changes, and a file that cannot be written is refused with one line.
#include <gtest/gtest.h>
#include <gtkwave/fstapi.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/text/error.h"
#include "system/observe/observers.h"
#include "testbenches/system/machine/study_stand.h"
#include "ub_fabric/wire_format.h"
#include "workloads/fabric/p2p.h"
#include "workloads/fabric/switch_bench.h"

namespace cm384::studies::wave_test {
namespace {

// A folder of the test that runs, empty.
std::string scratch() {
  const std::string folder =
      ::testing::TempDir() + "cm384-waves-" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  return folder + "/";
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

struct Waves {
  int timescale = 0;  // power of ten of a second
  std::set<std::string> names;
  std::vector<std::uint64_t> rises;  // of the chip's clock
};

Waves read_waves(const std::string& file) {
  Waves waves;
  void* reader = fstReaderOpen(file.c_str());
  if (reader == nullptr) {
    ADD_FAILURE() << file << " is no FST file";
    return waves;
  }
  waves.timescale = fstReaderGetTimescale(reader);
  fstHandle clock = 0;
  while (const fstHier* h = fstReaderIterateHier(reader)) {
    if (h->htyp != FST_HT_VAR) continue;
    const std::string name(h->u.var.name, h->u.var.name_length);
    if (name == "clk_i" && clock == 0) clock = h->u.var.handle;
    waves.names.insert(name.substr(0, name.find(' ')));
  }
  fstReaderSetFacProcessMask(reader, clock);
  fstReaderIterBlocks(
      reader,
      [](void* user, std::uint64_t time, fstHandle, const unsigned char* value) {
        auto& w = *static_cast<Waves*>(user);
        if (*value == '1' && time != 0) w.rises.push_back(time);
      },
      &waves, nullptr);
  fstReaderClose(reader);
  return waves;
}

void expect_signals_of_a_switch(const Waves& waves) {
  EXPECT_EQ(waves.timescale, -12);
  for (const char* name :
       {"clk_i", "valid_i", "flit_i", "credits_q", "left_q", "flit_q", "waiting_q", "valid_o"})
    EXPECT_TRUE(waves.names.contains(name)) << name;
}

TEST(Waves, OfABareChip) {
  const std::string folder = scratch();
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.rtl = true;
  setting.ports = 8;
  setting.packets = 1'000;
  setting.offered = 0.3;
  const SwitchReading without = run_switch(machine, setting);
  setting.waves = folder + "chip.fst";
  const SwitchReading with = run_switch(machine, setting);
  EXPECT_EQ(with.latency_ns.mean, without.latency_ns.mean);
  EXPECT_EQ(with.rtl_cycles, without.rtl_cycles);
  EXPECT_EQ(files_in(folder), std::set<std::string>{"chip.fst"});
  const Waves waves = read_waves(setting.waves);
  expect_signals_of_a_switch(waves);
  // The clock rises once per cycle, with the flits of the links.
  ASSERT_EQ(waves.rises.size(), with.rtl_cycles);
  const Clock flits(Bytes{ub::kFlitBytes}, machine.ub.link.bandwidth);
  for (const std::uint64_t at : waves.rises) {
    const Time time{static_cast<std::int64_t>(at)};
    ASSERT_EQ(flits.start(flits.tick_at_or_after(time)), time);
  }
  EXPECT_LE(waves.rises.back(), static_cast<std::uint64_t>((with.simulated + 100_us).ps));
}

// Two chips of the Clos, one of them without a packet.
TEST(Waves, OfChipsInTheClos) {
  const std::string folder = scratch();
  supernode::StudyStand stand;
  stand.fabric.rtl = {"l1:0.2", "l2:2.5"};
  observe::ObserverRequest request;
  request.wave = folder + "links.vcd.gz";
  observe::Observers observers(request);
  StudyContext context = stand.context();
  SimulatorCounts without, with;
  P2pPoint point;
  point.volume = Bytes{0};
  const auto reading = [&](SimulatorCounts& counts) { return measure_p2p(context, point, counts); };
  reading(without);
  context.observers = &observers;
  reading(with);
  EXPECT_EQ(with.rtl_cycles, without.rtl_cycles);
  EXPECT_EQ(with.simulated, without.simulated);
  EXPECT_EQ(files_in(folder),
            (std::set<std::string>{"links.vcd.gz", "links.l1-0.2.fst", "links.l2-2.5.fst"}));
  const Waves l1 = read_waves(folder + "links.l1-0.2.fst");
  expect_signals_of_a_switch(l1);
  EXPECT_EQ(l1.rises.size(), with.rtl_cycles);
  EXPECT_LT(l1.rises.back(), static_cast<std::uint64_t>(with.simulated.ps));
  const Waves l2 = read_waves(folder + "links.l2-2.5.fst");
  expect_signals_of_a_switch(l2);
  EXPECT_TRUE(l2.rises.empty());
}

TEST(Waves, AFileThatCannotBeWrittenIsRefused) {
  const std::string folder = scratch();
  const hw::Machine machine = hw::load_machine("cloudmatrix384");
  SwitchCase setting;
  setting.rtl = true;
  setting.packets = 1'000;
  std::filesystem::create_directories(folder + "chip.fst/full");  // a folder in the way of the name
  setting.waves = folder + "chip.fst";
  EXPECT_THROW(run_switch(machine, setting), OutputError);
  setting.waves = "/proc/chip.fst";
  EXPECT_THROW(run_switch(machine, setting), OutputError);
  EXPECT_EQ(files_in(folder), std::set<std::string>{"chip.fst"});
  // A run that ends early leaves nothing.
  setting.waves = folder + "early.fst";
  setting.packets = 1;
  EXPECT_THROW(run_switch(machine, setting), InputError);
  EXPECT_EQ(files_in(folder), std::set<std::string>{"chip.fst"});
}

}  // namespace
}  // namespace cm384::studies::wave_test
