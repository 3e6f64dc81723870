// Options of `cm384 run serve`.
#pragma once

#include <string>

#include "service/deployment.h"
#include "studies/request_options.h"

namespace cm384::studies {

struct ServeOptions {
  RequestOptions requests;
  std::string deployment = std::string(service::kPublishedDeployment);
  Texts deploy;
  std::string library = "cloudmatrix384";
  bool allow_extrapolation = false;
  double slo_ttft = 2000, slo_tpot = 50;
  bool find_rate = false;
  double slo_share = 0.9;
  int seeds = 1;
  int tenants = 1;
  Texts outage;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    RequestOptions::describe(self.requests, visit);
    visit(
        "deployment", self.deployment, Form{"NAME|FILE"},
        "who serves, as TOML; cloudmatrix-infer: six prefill instances of 16 NPUs to one of decode with 160");
    visit("deploy", self.deploy, Form{"KEY=VALUE"},
          "change of the deployment, such as decode.batch=64; may be repeated");
    visit("library", self.library, Form{"NAME|FILE"}, "measured times that steps are made of");
    visit("allow-extrapolation", self.allow_extrapolation, "take times outside of what was measured");
    visit("slo-ttft", self.slo_ttft, Range{0.001, 1e9}, "objective for the time to the first token, ms");
    visit("slo-tpot", self.slo_tpot, Range{0.001, 1e9}, "objective for the time per output token, ms");
    visit("slo", self.find_rate,
          "find the largest rate at which --slo-share of the requests meet both objectives");
    visit("slo-share", self.slo_share, Range{0.01, 1.0}, "of the requests that must meet them",
          Needs{"slo", {}});
    visit("seeds", self.seeds, Range{1, 1000},
          "runs with seeds of their own; means have their 95 % interval over them");
    visit("tenants", self.tenants, Range{1, 1'000'000},
          "that sessions belong to in turn; none reads another's blocks");
    visit("outage", self.outage, Form{"POOL:INSTANCE:AT:DURATION"},
          "an instance of prefill or decode is away, such as prefill:2:60s:30s; may be repeated");
  }
};

}  // namespace cm384::studies
