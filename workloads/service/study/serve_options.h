// Options of `cm384 run serve`.
#pragma once

#include <string>

#include "workloads/frame/request_options.h"
#include "workloads/service/deployment.h"
#include "workloads/service/study/serve_report.h"
#include "workloads/service/training_beside.h"

namespace cm384::studies {

struct ServeOptions {
  RequestOptions requests;
  Reals rate;
  std::string lengths, gaps = "exponential", ramp = "1:1", save;
  int concurrency = 0, count = 0, turns = 1, classes = 1;
  Time think{};
  std::string deployment = std::string(service::kPublishedDeployment);
  Texts deploy;
  int npus = 0;
  std::string model, library = "cloudmatrix384";
  bool allow_extrapolation = false;
  double slo_ttft = 2000, slo_tpot = 50, slo_e2e = 0, slo_itl = 0;
  Texts slo_class;
  bool find_rate = false;
  double slo_share = 0.9;
  int slo_seeds = 1;
  int seeds = 1;
  int tenants = 1;
  Texts outage, fault, role_switch;
  std::string warm, observed;
  Texts beside;
  double npu_share = 1;
  int shared_npus = 384;
  bool shared_cache = false;
  std::string training;
  Texts search;
  std::string search_by = "goodput";
  bool why = false, evidence = false;
  int timeline_requests = 200;
  int audit = 0, audit_prefill = 0;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    RequestOptions::describe(self.requests, visit);
    visit("rate", self.rate, RequestOptions::kRates,
          "requests per second, one row each; recorded arrivals are scaled to it. 0: as recorded, or 10");
    visit("gaps", self.gaps, Form{"exponential|gamma:SHAPE|weibull:SHAPE", service::check_gap_distribution},
          "distances between drawn arrivals; shapes below 1 make bursts");
    visit("ramp", self.ramp, Form{"FROM:TO..", service::check_ramp},
          "drawn arrivals at FROM times the rate first, TO times at last, evenly in between; more of them "
          "are spaced evenly, such as 0.3:1.7:0.3:1.7:0.3 for two days");
    visit(
        "lengths", self.lengths, Form{"FILE"},
        "requests that were recorded, of which drawn ones have the lengths: any of them, prompt and answer");
    visit("turns", self.turns, Range{1, 1000},
          "requests of a drawn session: each prompt is the one before it, its answer, and --prompt more; the "
          "blocks of both are kept");
    visit(
        "concurrency", self.concurrency, Range{0, 1'000'000},
        "a closed loop of this many users, each of whom asks again on receiving the answer; 0: arrivals at a "
        "rate");
    visit("count", self.count, Range{0, 20'000'000}, "requests of all users; 0: four for each",
          Needs{"concurrency", {}});
    visit("think", self.think, Range{Time{}, 604'800_s},
          "between an answer and the next request of a user or session: the mean of an exponential "
          "distribution");
    visit("classes", self.classes, Range{1, 256},
          "of priority, that sessions belong to in turn, or requests where none is named, 0 the most urgent; "
          "with --deploy "
          "prefill.order=priority");
    visit("export", self.save, Form{"FILE"},
          "write the requests of the first run, as --requests takes them: with its seed that gives the same "
          "rows");
    visit(
        "deployment", self.deployment, Form{"NAME|FILE"},
        "who serves, as TOML; cloudmatrix-infer: six prefill instances of 16 NPUs to one of decode with 160");
    visit("deploy", self.deploy, Form{"KEY=VALUE"},
          "change of the deployment, such as decode.batch=64; may be repeated");
    visit(
        "npus", self.npus, Range{0, 100'000},
        "divide this many into instances of prefill and decode in every way that has both, one row each; 0: "
        "as the deployment says");
    visit("library", self.library, Form{"NAME|FILE"}, "measured times that steps are made of");
    visit(
        "model", self.model, Form{"NAME"},
        "language model: its deployment and library, where these are not named; default: what the library is "
        "of");
    visit("allow-extrapolation", self.allow_extrapolation, "take times outside of what was measured");
    visit("slo-ttft", self.slo_ttft, Range{0.001, 1e9}, "objective for the time to the first token, ms");
    visit("slo-tpot", self.slo_tpot, Range{0.001, 1e9}, "objective for the time per output token, ms");
    visit("slo-e2e", self.slo_e2e, Range{0.0, 1e9},
          "objective for the time from arrival to the end, ms; 0: none");
    visit("slo-itl", self.slo_itl, Range{0.0, 1e9},
          "objective for the longest wait between two deliveries of an answer's tokens, of which a step may "
          "bring several, the way to decode included, ms; 0: none");
    visit("slo-class", self.slo_class, Form{"CLASS:TTFT:TPOT[:E2E[:ITL]]", check_class_objective},
          "objectives of a class of priority in place of these, ms, such as 1:10000:200; may be repeated");
    visit("slo", self.find_rate,
          "find the largest rate at which --slo-share of the requests meet their objectives");
    visit("slo-share", self.slo_share, Range{0.01, 1.0}, "of the requests that must meet them",
          Needs{"slo", {}});
    visit("slo-seeds", self.slo_seeds, Range{1, 1000},
          "seeds of which each has a largest rate: the row has the mean and its 95 % interval",
          Needs{"slo", {}});
    visit("seeds", self.seeds, Range{1, 1000},
          "runs with seeds of their own; means have their 95 % interval over them");
    visit("tenants", self.tenants, Range{1, 1'000'000},
          "that sessions belong to in turn, or requests where none is named; none reads another's blocks");
    visit("warm", self.warm, Form{"FILE"},
          "requests of before, whose blocks are in the cache at the beginning, in their order");
    visit("observed", self.observed, Form{"FILE"},
          "a recorded run of a real server, lines of arrival_s,prompt,output,first_token_s,last_token_s: its "
          "requests, its times beside, and the time of its host that fits the first half of them");
    visit(
        "beside", self.beside, Form{"FILE"},
        "another service on the same supernode, of its own model, as TOML: `name` and options of `run "
        "serve`; may be repeated. Instances that scale.most and scale.decode_most allow are started on NPUs "
        "that are free: a row for each service");
    visit("npu-share", self.npu_share, Range{0.001, 1e6},
          "weight by which this service is due to a part of all NPUs; the others have `npu-share` in their "
          "files",
          Needs{"beside", {}});
    visit("shared-npus", self.shared_npus, Range{2, 100'000},
          "NPUs of all services together, with --beside, and of a training");
    visit("shared-cache", self.shared_cache,
          "the memory service of this service is that of all: its least recently used blocks leave, whosever "
          "they are, and each service has at most its cache.quota of it",
          Needs{"beside", {}});
    visit("training", self.training, Form{"NPUS:TOKENS_S,..", service::check_training_sizes},
          "a training on the NPUs that services leave free, such as 64:20000,128:39000: tokens per second "
          "of each size that it can have, as `run train` gives them. It goes on from a checkpoint on fewer "
          "NPUs where a service wants some, and on more where they stay free: `training` of the deployment "
          "says what that takes");
    visit("search", self.search, Form{"KEY=VALUE,VALUE.."},
          "values of a parameter of the deployment, each with each value of other ones; may be repeated. All "
          "serve the first requests, the better third of them three times as many, and so on: a row each, by "
          "rank");
    visit("search-by", self.search_by, OneOf{{"goodput", "tokens", "cost", "energy"}},
          "what is best: most goodput per NPU; or most tokens per NPU, least cost or energy per token where "
          "90 % "
          "of the requests meet both objectives",
          Needs{"search", {}});
    visit("why", self.why,
          "what bound the service: where requests spent their time, all and the slowest ones");
    visit(
        "evidence", self.evidence,
        "what p50, p90 and p99 of the latencies are known from: measured times, interpolated ones and by how "
        "much these may be off, parameters");
    visit("outage", self.outage, Form{"POOL:INSTANCE:AT:DURATION"},
          "an instance of prefill or decode is away, such as prefill:2:60s:30s; may be repeated");
    visit("fault", self.fault, Form{"die=POOL:INSTANCE:DIE,at=TIME|plane=P,at=TIME"},
          "a die is lost for good, with recovery=degrade|switch|restart, or a sub-plane of the Unified Bus, "
          "with for=TIME or for good; may be repeated");
    visit("switch", self.role_switch, Form{"POOL:INSTANCE:POOL@TIME"},
          "instances serve in the other pool from then on, such as decode:1:prefill@600s or "
          "prefill:0-9:decode@600s; may be repeated");
    visit("timeline-requests", self.timeline_requests, Range{1, 10'000},
          "requests that the timeline shows, in the order of arrival from --timeline-from on",
          Needs{"timeline", {}});
    visit("audit", self.audit, Range{0, 1000},
          "steps, drawn by the seed, of which a decode layer is simulated on the machine and compared with "
          "what "
          "the library gave; what that takes is said before");
    visit(
        "audit-prefill", self.audit_prefill, Range{0, 1000},
        "batches of prompts, drawn by the seed, that are simulated with the lengths of their own prompts and "
        "compared likewise");
  }
};

}  // namespace cm384::studies
