// Options of studies in which jobs arrive at a pool: where the jobs are from, and who gets which NPUs.
#pragma once

#include <string>
#include <vector>

#include "workloads/cluster/allocation.h"
#include "workloads/frame/study.h"

namespace cm384::studies {

struct JobOptions {
  std::string trace;
  int largest_block = 0;
  std::string block = "powers:64:10.08";
  bool block_is_given = false;
  std::string duration = "lognormal:122:1485";
  int blocks = 1;
  double load = 0;
  int granule = 1;
  bool one_node = false;
  std::string fit = "best", order = "fcfs", traffic = "all";

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit, const char* load) {
    visit("trace", self.trace, Form{"FILE"},
          "recorded jobs: CSV with job_id,submit_s,npus,block,blocks,duration_s, or files of Acme, Helios, "
          "Philly, of which a GPU counts as an NPU");
    visit("largest-block", self.largest_block, Range{0, cluster::kMostBlock},
          "NPUs: a larger recorded job is several blocks, which may lie in several supernodes; 0: a job is "
          "one block");
    visit("block", self.block,
          Form{"fixed:N|uniform:LOW:HIGH|powers:LARGEST:MEAN", cluster::check_block_sizes},
          "NPUs of a block, which lies within one supernode; powers: of two, small ones the more often the "
          "smaller the mean is. The default is smaller where a supernode has fewer than 64");
    visit("blocks", self.blocks, Range{1, 10'000}, "of a job, which start together");
    visit("duration", self.duration,
          Form{"fixed:S|exponential:MEAN|lognormal:MEDIAN:MEAN", cluster::check_run_times},
          "seconds that a job runs; the default is that of Kalos' jobs");
    visit("load", self.load, Range{0.0, 10.0}, load);
    visit(
        "granule", self.granule, Range{1, 1024},
        "NPUs that are allocated together: 1, or a divisor of a node's NPUs, such as 8 for whole nodes of 8");
    visit("one-node", self.one_node, "a block that a node could hold lies in one");
    visit("fit", self.fit, OneOf{{"first", "best", "idlest", "min-cut"}},
          "supernode of a block: the first with room, the one with fewest free NPUs, with most; min-cut: the "
          "one in which least of its --traffic leaves nodes, with its ranks on nodes by that");
    visit("traffic", self.traffic, Form{"all|ring|groups:N:SHARE|FILE", cluster::check_traffic},
          "of a block's NPUs: each to all, each to the next, SHARE of it within N consecutive ones and the "
          "rest "
          "between the same ones of such groups; or CSV with source,destination,bytes by rank");
    visit("order", self.order, OneOf{{"fcfs", "any"}},
          "who starts: the first that waits, others behind it; or any of the first 500 that fits, without "
          "reservation");
  }
  void follow(const Given& given) { block_is_given = given.contains("block"); }
  void settle(const hw::Machine& machine);

  cluster::Fit chosen_fit() const { return cluster::fit_of(fit).value(); }
  cluster::Order chosen_order() const { return order == "any" ? cluster::Order::any : cluster::Order::fcfs; }
  // Of the machine's supernodes with `npus` each. Throws InputError with `study` in front.
  cluster::PoolShape shape(const hw::Machine& machine, int npus, const std::string& study) const;
  // Throws InputError where blocks of these jobs have no such traffic, or cannot be placed by it.
  void check_blocks(const std::vector<cluster::Job>& jobs, const cluster::BlockTraffic& of,
                    const std::string& study) const;
  // Files that are read.
  std::vector<std::string> files() const;
  // Arrivals per second at the load; 0: no load is given.
  double arrivals(const cluster::PoolShape& shape) const;
  cluster::JobTrace draw(std::int64_t count, double per_second, std::uint64_t seed) const;
};

}  // namespace cm384::studies
