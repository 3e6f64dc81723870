// `--fault`: what it reads, which links it meets, and what that does.
#include "system/machine/faults.h"

#include <gmock/gmock.h>

#include "base/text/error.h"
#include "testbenches/hw/refusal.h"
#include "testbenches/system/machine/study_stand.h"
#include "workloads/frame/options.h"
#include "workloads/frame/session.h"

namespace cm384::supernode::faults_test {
namespace {

using ::cm384::refusal;
using ::testing::HasSubstr;

TEST(FaultRequest, IsRead) {
  const FaultRequest trunk = parse_fault("plane=2,node=1,l2=3,rate=1e-4,seed=7,kind=lost");
  EXPECT_EQ(trunk.links.plane, 2);
  EXPECT_EQ(trunk.links.parts, (std::vector<LinkName::End>{{"l1chip", 1}, {"l2chip", 3}}));
  EXPECT_EQ(trunk.rate, 1e-4);
  EXPECT_EQ(trunk.seed, 7u);
  EXPECT_EQ(trunk.damage, ub::Damage::lost);
  const FaultRequest port = parse_fault("die=5,rate=0.5");
  EXPECT_EQ(port.links.parts, (std::vector<LinkName::End>{{"die", 5}}));
  EXPECT_EQ(port.links.plane, -1);
  EXPECT_EQ(port.damage, ub::Damage::corrupted);
  EXPECT_FALSE(port.per_bit);
  EXPECT_EQ(parse_fault("chip=0,chip=1,kind=down").links.parts,
            (std::vector<LinkName::End>{{"chip", 0}, {"chip", 1}}));
  EXPECT_EQ(parse_fault("plane=3,l2=5,kind=down,at=60us").at, Time{60'000'000});
  EXPECT_EQ(parse_fault("die=0,lanes=half,at=1500ns").at, Time{1'500'000});
  EXPECT_EQ(parse_fault("die=0,lanes=half").at, Time{});
  const FaultRequest bits = parse_fault("die=5,plane=2,ber=1e-6");
  EXPECT_EQ(bits.rate, 1e-6);
  EXPECT_TRUE(bits.per_bit);
}

TEST(FaultRequest, IsRefusedInOneLine) {
  const auto refused = [](const char* text) { return refusal([=] { parse_fault(text); }); };
  EXPECT_THAT(refused(""), HasSubstr("is not key=value"));
  EXPECT_THAT(refused("plane=0"), HasSubstr("does not name links and a rate"));
  EXPECT_THAT(refused("rate=0.1"), HasSubstr("does not name links"));
  EXPECT_THAT(refused("plane=0,die=3"), HasSubstr("and a rate"));
  EXPECT_THAT(refused("plane=0,die=3,rate=0,ber=0"), HasSubstr("and a rate"));
  EXPECT_THAT(refused("plane=0,die=3,ber=1"), HasSubstr("ber=1 is out of range"));
  EXPECT_THAT(refused("plane=0,die=3,rat=1"), HasSubstr("did you mean rate?"));
  EXPECT_THAT(refused("plane=0,die=3,rate=1"), HasSubstr("rate=1 is out of range"));
  EXPECT_THAT(refused("plane=0,die=-3,rate=0"), HasSubstr("die=-3 is out of range"));
  EXPECT_THAT(refused("plane=0,die=3,rate=0,kind=odd"), HasSubstr("allowed: corrupt, lost"));
  EXPECT_THAT(refused("plane=0,die=3,rate=0,plane=1"), HasSubstr("names plane twice"));
}

TEST(Faults, MustNameALinkOfTheMachine) {
  const hw::Machine parameters = hw::load_machine("cloudmatrix384");
  SupernodeOptions options;
  options.dies = {0};
  Supernode machine(parameters, options);
  Faults faults(machine);
  const auto refused = [&](const char* text) { return refusal([&] { faults.attach(parse_fault(text)); }); };
  EXPECT_THAT(refused("plane=7,die=0,rate=0"), HasSubstr("plane 7 does not exist; allowed: 0 to 6"));
  EXPECT_THAT(refused("plane=0,node=48,l2=0,rate=0"),
              HasSubstr("l1chip 48 does not exist; allowed: 0 to 47"));
  EXPECT_THAT(refused("plane=0,node=0,l2=16,rate=0"),
              HasSubstr("l2chip 16 does not exist; allowed: 0 to 15"));
  EXPECT_THAT(refused("plane=0,die=768,rate=0"), HasSubstr("die 768 does not exist"));
  EXPECT_THAT(refused("plane=0,die=1,rate=0"), HasSubstr("does not take part"));
  EXPECT_THAT(refused("plane=0,die=0,l2=0,rate=0"), HasSubstr("there is no such link"));
  EXPECT_THAT(refused("chip=0,rate=0"), HasSubstr("chip: this topology has none"));
  faults.attach(parse_fault("plane=0,die=0,rate=0"));
  EXPECT_THAT(refused("plane=0,die=0,rate=0"), HasSubstr("named twice"));
}

struct Outcome {
  double latency_us = 0;
  studies::SimulatorCounts counts;
  Json totals;
};

Outcome run(const std::vector<std::string>& faults, const char* distance) {
  StudyStand stand;
  observe::StatisticsFile file(false);
  stand.statistics = &file;
  stand.fabric.fault = faults;
  Outcome outcome;
  const studies::P2pPoint point{
      .operation = "write", .distance = distance, .bytes = Bytes{4096}, .volume = Bytes{0}};
  outcome.latency_us = studies::measure_p2p(stand.context(), point, outcome.counts).latency_us;
  outcome.totals = file.to_document("p2p")["rows"][0]["totals"];
  return outcome;
}

TEST(Faults, DelayWhatTheyMeetAndAreCounted) {
  const Outcome clean = run({}, "intra-node");
  EXPECT_EQ(clean.counts.damaged, 0u);
  const Outcome corrupt = run({"plane=1,die=0,rate=0.5"}, "intra-node");
  const Outcome lost = run({"plane=1,die=0,rate=0.5,kind=lost"}, "intra-node");
  EXPECT_GT(corrupt.totals["die*.ub.port*.retransmissions"], 0);
  EXPECT_GT(corrupt.totals["plane*.l1chip*.to_die*.retransmissions"], 0);
  EXPECT_EQ(corrupt.totals["die*.ub.port*.retransmissions"].get<std::uint64_t>() +
                corrupt.totals["plane*.l1chip*.to_die*.retransmissions"].get<std::uint64_t>(),
            corrupt.counts.damaged);
  EXPECT_GT(corrupt.latency_us, clean.latency_us);
  EXPECT_GT(lost.latency_us, corrupt.latency_us);
  // The bytes arrive all the same: as many packets, each counted once.
  EXPECT_EQ(corrupt.counts.packet_hops, clean.counts.packet_hops);
  EXPECT_EQ(run({"plane=1,die=0,rate=0.5"}, "intra-node").latency_us, corrupt.latency_us);
  EXPECT_NE(run({"plane=1,die=0,rate=0.5,seed=9"}, "intra-node").latency_us, corrupt.latency_us);
}

TEST(Faults, OnATrunkMeetOnlyWhatPasses) {
  const std::vector<std::string> trunks = {"plane=0,node=0,l2=0,rate=0.9", "plane=0,node=0,l2=1,rate=0.9",
                                           "plane=0,node=0,l2=2,rate=0.9", "plane=0,node=0,l2=3,rate=0.9"};
  const Outcome inside = run(trunks, "intra-node");
  EXPECT_EQ(inside.counts.damaged, 0u);
  EXPECT_EQ(inside.latency_us, run({}, "intra-node").latency_us);
  std::vector<std::string> all;
  for (int l2 = 0; l2 < 16; ++l2) all.push_back("plane=0,node=0,l2=" + std::to_string(l2) + ",rate=0.9");
  const Outcome outside = run(all, "inter-node");
  EXPECT_GT(outside.totals["plane*.l1chip*.to_l2chip*.retransmissions"], 0);
  EXPECT_GT(outside.totals["plane*.l2chip*.to_l1chip*.retransmissions"], 0);
  EXPECT_EQ(outside.totals["plane*.l1chip*.to_die*.retransmissions"], 0);
}

double bandwidth(const std::vector<std::string>& faults) {
  StudyStand stand;
  stand.fabric.fault = faults;
  studies::SimulatorCounts counts;
  const studies::P2pPoint point{
      .operation = "write", .distance = "inter-node", .bytes = Bytes{4096}, .volume = Bytes{4 << 20}};
  return studies::measure_p2p(stand.context(), point, counts).bandwidth_GBps;
}

// 28 flits carry 512 B, at 28 GB/s a port.
constexpr double kPort = 28 * 512.0 / 560.0;

TEST(Faults, LeaveTheBandwidthOfWhatIsLeft) {
  const double whole = bandwidth({});
  EXPECT_GT(whole, 5 * kPort);  // the controller binds
  const std::vector<std::string> planes = {"plane=0,kind=down", "plane=1,node=0,kind=down",
                                           "plane=2,node=1,kind=down", "plane=3,die=0,kind=down"};
  EXPECT_NEAR(bandwidth(planes), 3 * kPort, 0.05 * 3 * kPort);
  std::vector<std::string> chips = planes;
  for (int l2 = 1; l2 < 16; ++l2) chips.push_back("l2=" + std::to_string(l2) + ",kind=down");
  EXPECT_NEAR(bandwidth(chips), 3 * kPort,
              0.05 * 3 * kPort);  // one L2 chip for each plane is enough for one die
  EXPECT_NEAR(bandwidth({"die=0,lanes=quarter"}), 7 * kPort / 4, 0.05 * 7 * kPort / 4);
}

// A stream of 4 MiB over chips, links and sub-planes that go out of order in the middle of it: all of it
// arrives, and the rest goes by what is left.
TEST(Faults, MayComeInTheMiddleOfAStream) {
  const double whole = bandwidth({});
  const double without =
      bandwidth({"plane=0,kind=down", "plane=1,kind=down", "plane=2,kind=down", "plane=3,kind=down"});
  for (const std::vector<std::string>& middle :
       {std::vector<std::string>{"plane=0,node=0,kind=down,at=25us", "plane=1,node=1,kind=down,at=25us",
                                 "plane=2,die=0,kind=down,at=25us", "plane=3,kind=down,at=25us"},
        {"plane=0,die=16,kind=down,at=22us", "plane=1,kind=down,at=24us", "plane=2,kind=down,at=26us",
         "plane=3,kind=down,at=28us"}}) {
    const double broken = bandwidth(middle);
    EXPECT_LT(broken, whole);
    EXPECT_GT(broken, 0.5 * without);  // a timeout is as long as much of the stream
  }
  EXPECT_EQ(bandwidth({"plane=0,kind=down,at=0us"}), bandwidth({"plane=0,kind=down"}));
}

TEST(Faults, TellWhatIsNotReachedAndWhatDoesNotFit) {
  std::vector<std::string> all;
  for (int plane = 0; plane < 7; ++plane)
    all.push_back("plane=" + std::to_string(plane) + ",node=1,kind=down");
  EXPECT_THAT(refusal([&] { bandwidth(all); }), HasSubstr("no path is left between die 0 and die 16"));
  const auto refused = [](const char* text) { return refusal([=] { parse_fault(text); }); };
  EXPECT_THAT(refused("l2=5,kind=down,rate=0.1"), HasSubstr("stand without others"));
  EXPECT_THAT(refused("l2=5,lanes=half,ber=0.1"), HasSubstr("stand without others"));
  EXPECT_THAT(refused("l2=5,rate=0.1,at=60us"), HasSubstr("at goes with kind=down and lanes"));
  EXPECT_THAT(refused("l2=5,kind=down,at=60"), HasSubstr("60"));
  EXPECT_THAT(refused("l2=5,kind=down,at=-1us"), HasSubstr("allowed: 0us to 100s"));
  EXPECT_THAT(refused("l2=5,kind=down,at=101s"), HasSubstr("allowed: 0us to 100s"));
  all.back() += ",at=40us";
  EXPECT_THAT(refusal([&] { bandwidth(all); }),
              HasSubstr("from 40 us on no path is left between die 0 and die 16"));
  EXPECT_THAT(refused("l2=5,lanes=third"), HasSubstr("allowed: half, quarter"));
  EXPECT_THAT(refusal([&] { bandwidth({"all,kind=down"}); }), HasSubstr("all cannot be down"));
}

}  // namespace
}  // namespace cm384::supernode::faults_test
