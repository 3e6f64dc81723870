#include "testbenches/studies/observers.h"

#include <fmt/format.h>

namespace cm384::studies {

std::string numbered(const std::string& path, int number) {
  if (number == 1) return path;
  const std::size_t name = path.find_last_of('/') + 1;  // 0 without a folder
  const std::size_t dot = path.find('.', name + 1);
  const std::size_t at = dot == std::string::npos ? path.size() : dot;
  return fmt::format("{}-{}{}", path.substr(0, at), number, path.substr(at));
}

void Observers::attach(supernode::Supernode& machine) {
  ++machines_;
  if (!request_.record.empty()) {
    trace_ = traces::create_traffic(numbered(request_.record, machines_), {request_.machine, request_.study});
    recorder_ = std::make_unique<supernode::TrafficRecorder>(machine, *trace_);
  }
  if (!request_.timeline.empty())
    timeline_ = std::make_unique<supernode::Timeline>(machine, numbered(request_.timeline, machines_),
                                                      request_.shown);
  if (!request_.wave.empty())
    wave_ = std::make_unique<supernode::Wave>(machine, numbered(request_.wave, machines_), request_.links);
  if (timeline_ || wave_) {
    machine.trace_links([this](const supernode::LinkName& link) {
      return (timeline_ && timeline_->shows(link)) || (wave_ && wave_->shows(link));
    });
  }
}

void Observers::finish() {
  if (recorder_) {
    recorder_->finish();
    trace_->finish();
  }
  if (timeline_) timeline_->finish();
  if (wave_) wave_->finish();
  recorder_.reset();
  trace_.reset();
  timeline_.reset();
  wave_.reset();
}

}  // namespace cm384::studies
