// Faults of a service on the command line.
#include "workloads/service/study/serve_faults.h"

#include <gmock/gmock.h>

#include "testbenches/hw/refusal.h"

namespace cm384::studies::serve_faults_test {
namespace {

using ::testing::StartsWith;

TEST(ServeFaults, AreReadFromTheirOptions) {
  ServeOptions options;
  options.outage = {"prefill:2:60s:30s"};
  options.fault = {"die=decode:0:17,at=600s,recovery=switch", "die=prefill:1:3,at=5s", "at=2s,plane=6,for=1s",
                   "plane=0,at=3s"};
  options.role_switch = {"decode:1:prefill@10s", "prefill:0-9:decode@1s"};
  const service::Faults faults = serve_faults(options, 7);
  ASSERT_EQ(faults.outages.size(), 1u);
  EXPECT_EQ(faults.outages[0].at, 60_s);
  EXPECT_EQ(faults.outages[0].duration, 30_s);
  ASSERT_EQ(faults.dies.size(), 2u);
  EXPECT_FALSE(faults.dies[0].prefill);
  EXPECT_EQ(faults.dies[0].die, 17);
  EXPECT_EQ(faults.dies[0].at, 600_s);
  EXPECT_EQ(faults.dies[0].recovery, service::Recovery::role_switch);
  EXPECT_EQ(faults.dies[1].instance, 1);
  EXPECT_EQ(faults.dies[1].recovery, service::Recovery::degrade);
  ASSERT_EQ(faults.planes.size(), 2u);
  EXPECT_EQ(faults.planes[0].plane, 6);
  EXPECT_EQ(faults.planes[0].duration, 1_s);
  EXPECT_EQ(faults.planes[1].duration, Time{});
  ASSERT_EQ(faults.switches.size(), 2u);
  EXPECT_FALSE(faults.switches[0].prefill);
  EXPECT_EQ(faults.switches[1].last, 9);
}

TEST(ServeFaults, WhatIsWrongIsOneLine) {
  const auto fault = [](const char* text) {
    ServeOptions options;
    options.fault = {text};
    return refusal([&] { serve_faults(options, 7); });
  };
  for (const char* text :
       {"", "=", ",", "die", "die=decode:0:17", "die=decode:0,at=1s", "die=other:0:1,at=1s", "plane=1",
        "plane=-1,at=1s", "plane=1,at=1", "plane=1,at=1s,for=0s", "plane=1,at=1s,at=2s", "at=1s",
        "plane=1,die=decode:0:1,at=1s", "die=decode:0:1,at=1s,for=1s", "plane=1,at=1s,recovery=restart",
        "die=decode:0:1,at=1s,recovery=pray", "plane=1,at=-1s", "plane=99999999999999999999,at=1s"})
    EXPECT_THAT(fault(text), StartsWith(std::string("run serve: --fault ") + text + ": allowed: die=POOL"))
        << text;
  EXPECT_EQ(fault("plane=7,at=1s"), "run serve: --fault plane=7,at=1s: the machine has 7 sub-planes");
  for (const char* text : {"", "prefill:3:decode", "prefill:3:prefill@1s", "prefill:3-1:decode@1s",
                           "prefill:1-2-3:decode@1s", "decode:0:prefill@", "decode:x:prefill@1s"}) {
    ServeOptions options;
    options.role_switch = {text};
    EXPECT_THAT(refusal([&] { serve_faults(options, 7); }), StartsWith("run serve: --switch ")) << text;
  }
  for (const char* text : {"", "prefill:2:60s", "prefill:-1:60s:1s", "prefill:2:60s:1s:1s", "x:2:60s:1s"}) {
    ServeOptions options;
    options.outage = {text};
    EXPECT_THAT(refusal([&] { serve_faults(options, 7); }), StartsWith("run serve: --outage ")) << text;
  }
}

}  // namespace
}  // namespace cm384::studies::serve_faults_test
