#include "system/observe/observers.h"

#include <fmt/format.h>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "system/observe/line_files.h"

namespace cm384::observe {

std::string stem_of(const std::string& path) {
  const std::size_t name = path.find_last_of('/') + 1;  // 0 without a folder
  return path.substr(0, path.find('.', name + 1));
}

std::string numbered(const std::string& path, int number) {
  if (number == 1) return path;
  const std::string stem = stem_of(path);
  return fmt::format("{}-{}{}", stem, number, path.substr(stem.size()));
}

Observers::Observers(ObserverRequest request) : request_(std::move(request)) {
  for (const std::string& path : {request_.record, request_.timeline, request_.wave}) {
    if (!path.empty()) OutputFile::try_open(path);
  }
  if (!request_.lines.empty()) OutputFile::try_open(request_.lines + "/lines.json");
}

void Observers::attach(supernode::Supernode& machine, supernode::RtlChips& chips) {
  ++machines_;
  chips_ = &chips;
  if (!request_.record.empty()) {
    trace_ = traces::create_traffic(numbered(request_.record, machines_), {request_.machine, request_.study});
    recorder_ = std::make_unique<observe::TrafficRecorder>(machine, *trace_);
  }
  if (!request_.timeline.empty())
    timeline_ =
        std::make_unique<observe::Timeline>(machine, numbered(request_.timeline, machines_), request_.shown);
  if (!request_.wave.empty()) {
    const std::string file = numbered(request_.wave, machines_);
    wave_ = std::make_unique<observe::Wave>(machine, file, request_.links);
    chips.write_waves(stem_of(file));
  }
  if (!request_.lines.empty()) lines_ = std::make_unique<LineProfile>(machine);
  if (request_.explain) {
    explainer_ = std::make_unique<Explainer>(machine);
  } else if (request_.span) {
    span_ = std::make_unique<SpanWatch>(machine);
  } else if (timeline_ || wave_) {
    machine.trace_links([this](const supernode::LinkName& link) {
      return (timeline_ && timeline_->shows(link)) || (wave_ && wave_->shows(link));
    });
  }
}

void Observers::name_phases(std::string_view kernel, std::span<const std::string_view> names) {
  if (timeline_) timeline_->name_phases(kernel, names);
}

void Observers::begin_counted() {
  if (explainer_) explainer_->begin_counted();
  if (span_) span_->begin_counted();
  if (lines_) lines_->begin_counted();
}

void Observers::finish() {
  const auto end = [this](auto&& files) {
    try {
      files();
    } catch (const OutputError&) {
      if (!failure_) failure_ = std::current_exception();
    }
  };
  if (recorder_) {
    end([this] {
      recorder_->finish();
      trace_->finish();
    });
  }
  if (explainer_) explanations_.push_back(explainer_->finish());
  if (span_) spans_us_.push_back(span_->finish_us());
  if (lines_) {
    line_reports_.push_back(lines_->report());
    end([this] {
      const std::string folder =
          machines_ == 1 ? request_.lines : fmt::format("{}-{}", request_.lines, machines_);
      write_lines(line_reports_.back(), folder);
    });
  }
  if (timeline_) end([this] { timeline_->finish(); });
  if (wave_) {
    end([this] { wave_->finish(); });
    end([this] { chips_->finish_waves(); });
  }
  recorder_.reset();
  trace_.reset();
  timeline_.reset();
  wave_.reset();
  explainer_.reset();
  span_.reset();
  lines_.reset();
}

void Observers::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace cm384::observe
