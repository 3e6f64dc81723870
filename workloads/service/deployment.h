// A deployment of a service: pools of prefill and decode, the plane between them, and the memory service
// behind. A deployment is data: a TOML file whose values say where they come from, as those of a machine do.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/parameter_list.h"
#include "workloads/service/prompt_router.h"

namespace cm384::service {

class Library;

struct PrefillSpec {
  int instances = 6, npus = 16;
  int batch_tokens = 262'144, timed_tokens = 262'144, timed_prompt = 4096;
  Time batch_time{}, least_time{};
  double attention_share = 0;
  int microbatches = 1;
  int sequences = 0, chunk = 0, most_waiting = 0;
  std::string pool = "own", shares = "", order = "fcfs", route = "common";
  Time ageing{}, bubble{};
  int dies_of_npu = 2;  // that share a package, as settle() finds them

  int dies() const { return dies_of_npu * npus; }  // of an instance

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("pool", self.pool, hw::OneOf{{"own", "decode"}},
          "who computes prompts: instances of their own, or those of decode, whose dies are groups of `npus` "
          "for "
          "them: a step then computes chunks of prompts first and tokens of answers behind them");
    visit("instances", self.instances, Range{1, 1000}, "that take batches of prompts");
    visit("npus", self.npus, Range{1, 384}, "of an instance");
    visit("microbatches", self.microbatches, Range{1, 2},
          "of a batch of two prompts or more at most, where the library has measured them");
    visit(
        "batch_tokens", self.batch_tokens, Range{1, 100'000'000},
        "of a batch at most, cached ones too; a longer prompt is a batch of its own. With chunks: those that "
        "it computes");
    visit("sequences", self.sequences, Range{0, 100'000}, "prompts of a batch at most; 0: any number");
    visit("chunk", self.chunk, Range{0, 100'000'000},
          "tokens that a batch computes of a prompt at most: prompts that were begun go first, others beside "
          "them; 0: prompts are whole");
    visit("order", self.order, kPromptOrders,
          "in which prompts are begun: first come first served, shortest prompt first, by class of priority, "
          "or "
          "fair to tenants");
    visit("shares", self.shares, hw::Form{"N:N..", check_shares},
          "of tokens that tenants are due to, in turn, such as 3:1, by a fair order or quotas; empty: equal "
          "ones");
    visit("route", self.route, kPromptRoutes,
          "whom a prompt waits for: the next idle instance; or one it is sent to, by turns, by the fewest "
          "tokens "
          "sent there that are not computed, or by these and its own less what is cached there");
    visit("ageing", self.ageing, Range{Time{}, 10'000_s},
          "after which a prompt is as urgent as a new one of the class before its own; 0: never");
    visit("most_waiting", self.most_waiting, Range{0, 100'000'000},
          "prompts that may wait; a request that finds so many is refused; 0: any number");
    visit("timed_tokens", self.timed_tokens, Range{1, 100'000'000}, "of the batch that takes batch_time");
    visit("timed_prompt", self.timed_prompt, Range{1, 1'000'000}, "of each of its prompts");
    visit("batch_time", self.batch_time, Range{Time{}, 1000_s},
          "of the batch of timed_tokens, unless the library has measured ones");
    visit("least_time", self.least_time, Range{Time{}, 100_s},
          "of that, what a batch of one token takes as well");
    visit("bubble", self.bubble, Range{Time{}, 10_s},
          "of a host's scheduler before each batch, which nothing else hides");
    visit("attention_share", self.attention_share, Range{0.0, 1.0},
          "of batch_time that goes with tokens x tokens before them; the rest goes with tokens");
  }
};

struct DecodeSpec {
  int instances = 1, npus = 160, batch = 96, mtp = 1, graph_step = 8;
  double acceptance = 0.7;
  Bytes kv_room{}, token{70'272};
  Time bubble{}, renew_time{};
  int renew_every = 0;
  std::string reserve = "whole", preempt = "recompute", order = "fcfs";
  int block = 128;
  Bytes swap_room{};
  Bandwidth swap_out_rate{1'000'000'000}, swap_in_rate{1'000'000'000};
  std::string model = "deepseek-r1";
  int dies_of_npu = 2;  // as above
  hw::Reals draft_acceptance{};

  int dies() const { return dies_of_npu * npus; }
  int slots() const { return batch / dies_of_npu; }  // of a die
  // Of the blocks that so many tokens take, where room grows.
  std::int64_t bytes_of_blocks(std::int64_t tokens) const {
    return (tokens + block - 1) / block * block * token.count;
  }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("instances", self.instances, Range{1, 1000}, "that step by themselves");
    visit("npus", self.npus, Range{1, 384}, "of an instance");
    visit("batch", self.batch, Range{2, 4096, 2}, "requests per NPU at most");
    visit("graph_step", self.graph_step, Range{2, 4096, 2},
          "captured graphs have batches of multiples of it; a step is padded to the next");
    visit("mtp", self.mtp, Range{0, 8}, "tokens predicted beyond the next one");
    visit("acceptance", self.acceptance, Range{0.0, 1.0},
          "chance of each of these, if those before it were right");
    visit("draft_acceptance", self.draft_acceptance, Range{0.0, 1.0},
          "the same of each of them in turn, in place of `acceptance`");
    visit(
        "model", self.model, hw::Form{"NAME"},
        "language model that `token`, `kv_room` and prefill.batch_time are of; with a library of another one "
        "its steps say the first two, unless they are set beside it");
    visit("kv_room", self.kv_room, Range{1_MiB, 1024_GiB}, "of a die's memory, for contexts");
    visit("token", self.token, Range{1_B, 16_MiB}, "context of a token");
    visit("order", self.order, hw::OneOf{{"fcfs", "fair"}},
          "in which contexts go to dies: as prefill made them, or tokens of answers fair to tenants by "
          "prefill.shares");
    visit("reserve", self.reserve, hw::OneOf{{"whole", "growing"}},
          "room that a request is given: for its whole answer, or by blocks as tokens come; where these run "
          "out the last one that came to the die is preempted");
    visit("block", self.block, Range{1, 65'536}, "tokens of a block of growing room");
    visit(
        "preempt", self.preempt, hw::OneOf{{"recompute", "swap"}},
        "what becomes of a preempted request: it goes back to prefill with all its tokens, or its blocks go "
        "to host memory until a die of its instance has room, ahead of new ones");
    visit("swap_room", self.swap_room, Range{0_B, 1024_GiB},
          "host memory of each die for blocks that are swapped out, which those of an instance share; who "
          "finds none is recomputed");
    visit("swap_out_rate", self.swap_out_rate, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000'000}},
          "at which a die writes blocks to host memory, before its next step");
    visit("swap_in_rate", self.swap_in_rate, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000'000}},
          "at which a die reads them back");
    visit("bubble", self.bubble, Range{Time{}, 1_s}, "of a host's scheduler between two steps");
    visit("renew_every", self.renew_every, Range{0, 1'000'000},
          "steps between two placements of the experts; 0: they stay");
    visit("renew_time", self.renew_time, Range{Time{}, 1000_s}, "that an instance stands still for one");
  }
};

struct ContextCache {
  bool on = true, answers = true;
  std::string scope = "shared";
  int servers = 192;
  Bytes dram{}, evs{}, obs{};
  Bandwidth dram_rate{}, evs_rate{}, obs_rate{};
  Time latency{}, obs_latency{};
  double quota = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("on", self.on, "contexts are kept and used again");
    visit("answers", self.answers,
          "those of answers too, which decode writes: for the next turn of a session");
    visit("scope", self.scope, hw::OneOf{{"shared", "instance"}},
          "one cache for all prefill instances, or a part of it for each, which others do not read");
    visit("servers", self.servers, Range{1, 100'000}, "that blocks are hashed to");
    visit("dram", self.dram, Range{0_B, Bytes{std::int64_t{1} << 60}}, "of all servers");
    visit("evs", self.evs, Range{0_B, Bytes{std::int64_t{1} << 60}}, "SSD of all servers");
    visit("dram_rate", self.dram_rate, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000'000}},
          "at which an instance reads or writes blocks in DRAM");
    visit("evs_rate", self.evs_rate, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000'000}},
          "the same of blocks on SSD");
    visit("latency", self.latency, Range{Time{}, 1_s}, "of a batch's reads");
    visit("obs", self.obs, Range{0_B, Bytes{std::int64_t{1} << 60}},
          "object store behind all servers, for blocks that leave the SSDs; 0: none");
    visit("obs_rate", self.obs_rate, Range{Bandwidth{1'000'000}, Bandwidth{1'000'000'000'000'000}},
          "at which an instance reads blocks from the object store");
    visit("obs_latency", self.obs_latency, Range{Time{}, 100_s},
          "of a batch's reads from it, besides `latency`");
    visit("quota", self.quota, Range{0.0, 1.0},
          "of each tier that blocks of a tenant may have at most, or those of a service with --shared-cache: "
          "beyond it the least recently used of them leave");
  }
};

// After faults (workloads/service/faults.h).
struct RecoveryTimes {
  Time degrade{}, role_switch{}, restart{};
  double plane_step = 1, plane_batch = 1;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("degrade", self.degrade, Range{Time{}, 10'000_s},
          "pause of an instance that goes on without a die whose experts have another copy");
    visit("role_switch", self.role_switch, Range{Time{}, 10'000_s},
          "pause where another die takes its experts; and what an instance that changes its pool takes");
    visit("restart", self.restart, Range{Time{}, 10'000_s}, "of an instance");
    visit("plane_step", self.plane_step, Range{1.0, 100.0}, "times as long is a step for each plane lost");
    visit("plane_batch", self.plane_batch, Range{1.0, 100.0},
          "times as long is a batch of prompts for each plane lost");
  }
};

// Instances that come and go with the load, while as many as the deployment has stay; or that change their
// pool.
struct ScaleSpec {
  int most = 0, decode_most = 0;
  bool move = false;
  std::int64_t up_tokens = 262'144;
  double up_use = 0.9, down_use = 0.5;
  Time interval{10'000'000'000'000}, start{};

  bool adds() const { return most > 0 || decode_most > 0; }  // or ends
  bool acts() const { return adds() || move; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("most", self.most, Range{0, 1000}, "instances of prefill; 0: as many as there are, always");
    visit("decode_most", self.decode_most, Range{0, 1000},
          "instances of decode; 0: as many as there are, always");
    visit("move", self.move,
          "instances change their pool in place of being started and ended: one of decode for as many of "
          "prefill as have its NPUs, where one pool lacks instances and the other one spares them; it takes "
          "recovery.role_switch once they have ended what they had");
    visit("interval", self.interval, Range{1_ms, 100'000_s}, "at which the load is looked at");
    visit("up_tokens", self.up_tokens, Range{std::int64_t{1}, std::int64_t{1'000'000'000'000}},
          "that wait per instance, those that are being started too: where more do another one is started. "
          "Where "
          "none waits one that is idle ends");
    visit("up_use", self.up_use, Range{0.01, 10.0},
          "of decode's slots or room for contexts, whichever is more, by requests that have or wait for "
          "them: "
          "above it another instance is started; those that are being started count");
    visit("down_use", self.down_use, Range{0.0, 10.0},
          "of these without the instance that has the fewest requests: below it that one takes no more and "
          "ends once it has none");
    visit("start", self.start, Range{Time{}, 10'000_s}, "until an instance serves");
  }
};

// What each tenant may ask for; a request beyond it is refused.
struct QuotaSpec {
  int requests = 0;
  std::int64_t tokens_s = 0;
  Time period{60'000'000'000'000};

  bool acts() const { return requests > 0 || tokens_s > 0; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("requests", self.requests, Range{0, 100'000'000},
          "of a tenant that are in the service at a time; 0: any number");
    visit("tokens_s", self.tokens_s, Range{std::int64_t{0}, std::int64_t{1'000'000'000'000}},
          "tokens of prompts and answers per second of a tenant, times its share of prefill.shares; 0: any "
          "number");
    visit("period", self.period, Range{1_ms, 100'000_s},
          "for which tokens that a tenant did not ask for are kept: so much it may ask for at once");
  }
};

// A training on NPUs that the service leaves free (`run serve --training`).
struct TrainingSpec {
  Time release{}, resume{}, hold{};

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("release", self.release, Range{Time{}, 100'000_s},
          "from a service's want until the NPUs of the training are free: the end of its step and a "
          "checkpoint; also before it grows");
    visit("resume", self.resume, Range{Time{}, 100'000_s},
          "until it trains again from its checkpoint, on fewer or more NPUs");
    visit("hold", self.hold, Range{Time{}, 1'000'000_s},
          "that more NPUs have to be free before the training grows");
  }
};

struct Prices {
  double npu_hour = 0;
  double npu_watt = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    using hw::Range;
    visit("npu_hour", self.npu_hour, Range{0.0, 1e6}, "price of an NPU per hour, in any currency");
    visit("npu_watt", self.npu_watt, Range{0.0, 1e5}, "power of an NPU with all that belongs to it");
  }
};

struct Deployment {
  std::string name;
  PrefillSpec prefill;
  DecodeSpec decode;
  ContextCache cache;
  RecoveryTimes recovery;
  ScaleSpec scale;
  QuotaSpec quota;
  TrainingSpec training;
  Prices prices;
  struct Source {
    std::string from, text;
  };
  std::map<std::string, Source> sources;  // by key
  std::set<std::string> own;              // keys that the file itself or a change gives
  // Whether a change gives it.
  bool is_changed(const std::string& key) const {
    const auto source = sources.find(key);
    return source != sources.end() && source->second.from == "command line";
  }

  // Instances of decode compute prompts too: each has so many groups of prefill.npus for them.
  bool mixed() const { return prefill.pool == "decode"; }
  int groups() const { return decode.npus / prefill.npus; }
  int prefill_instances() const { return mixed() ? decode.instances * groups() : prefill.instances; }
  int npus() const {
    return (mixed() ? 0 : prefill.instances * prefill.npus) + decode.instances * decode.npus;
  }
  int prefill_dies() const { return prefill.dies(); }
  int decode_dies() const { return decode.dies(); }
  // Adapts the pools to NPUs of so many dies.
  void settle(int dies_of_npu) { prefill.dies_of_npu = decode.dies_of_npu = dies_of_npu; }

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("prefill", self.prefill);
    visit("decode", self.decode);
    visit("cache", self.cache);
    visit("scale", self.scale);
    visit("quota", self.quota);
    visit("training", self.training);
    visit("recovery", self.recovery);
    visit("prices", self.prices);
  }
};

// A deployment that comes with cm384, or a TOML file, with changes "section.key=value". A file gives what it
// changes of the published one. Throws InputError: file:line: key: what was found; what is allowed.
Deployment load_deployment(const std::string& name_or_path, const std::vector<std::string>& changes);
std::vector<std::string> deployment_names();
// Where `library` has the steps of another language model: its contexts and the room that a die of `memory`
// has for them, unless the deployment's own file or a change says them. Returns what was taken, as a note;
// empty: nothing. Throws InputError where neither says it, or where batches of prompts would be those of the
// deployment's model.
std::string fit_to(const Library& library, Bytes memory, Deployment& deployment);
inline constexpr std::string_view kPublishedDeployment = "cloudmatrix-infer";

}  // namespace cm384::service
