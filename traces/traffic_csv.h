// Traffic traces as CSV, one record per line:
//
//     id,kind,start_ps,end_ps,source,core,target,operation,offset,bytes,bursts,stride,lane,via,l2,dependencies,words
//     7,transfer,1200,2500,die3,11,die4,write,4096,7680,1,0,0,,yes,2:completion:350 5:arrival:0,
//
// `id` counts from 0. `core` is empty where the die's cores share the transfer, `sdma` for the SDMA engine,
// 50.fix for the fixpipe of cube core 50; `via` is `ub` where even the
// sibling die is reached by the Unified Bus, `rdma` where the RDMA plane is taken. `words` are those of
// host_words.h, separated by blanks; files without that column are read as well. Before the header a shaped
// trace has lines "# shaped: ..." that say what was done to it.
#pragma once

#include <string>

#include "base/text/lines.h"
#include "base/text/output_file.h"
#include "traces/traffic.h"

namespace cm384::traces {

class TrafficCsvWriter final : public TrafficSink {
 public:
  explicit TrafficCsvWriter(const std::string& path, const TrafficHeader& header = {});
  void add(const TrafficRecord& record) override;
  void finish() override { file_.finish(); }

 private:
  OutputFile file_;
  std::uint64_t records_ = 0;
};

class TrafficCsvReader final : public TrafficSource {
 public:
  explicit TrafficCsvReader(const std::string& path);
  const TrafficHeader& header() const override { return header_; }
  bool next(TrafficRecord& record) override;

 private:
  void read_words(const FieldReader& fields, TrafficRecord& record) const;

  LineReader lines_;
  TrafficHeader header_;
  std::string line_;
  bool words_ = true;  // the file has that column
  std::uint64_t records_ = 0;
};

}  // namespace cm384::traces
