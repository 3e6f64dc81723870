#include <algorithm>

#include "service/service.h"

namespace cm384::service {

void Service::go_away(const Outage& outage, std::uint32_t number) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  std::vector<std::uint32_t> again;
  if (outage.prefill) {
    if (prefill_[i].busy) end_batch(i, true);
    again = std::move(prefill_[i].batch);
    prefill_[i].batch.clear();
    prefill_[i].away = true;
    ++prefill_[i].epoch;
  } else {
    if (decode_[i].stepping()) end_step(i, true);
    again = decode_[i].lose_all();
    // Those on their way to it are lost as well.
    for (std::uint32_t k = 0; k < served_count(); ++k) {
      const Served& s = served(k);
      if (s.die >= 0 && s.die / decode_[i].dies() == outage.instance && s.done == Time{} &&
          s.transferred == Time{})
        again.push_back(k);
    }
  }
  tell({Activity::Kind::away, outage.prefill, outage.instance, 0, now_, now_ + outage.duration});
  push(now_ + outage.duration, Kind::back, number);
  start_anew(std::move(again));
}

// What was made of them is lost: they wait again, before those that came later.
void Service::start_anew(std::vector<std::uint32_t> again) {
  std::ranges::sort(again);
  again.erase(std::unique(again.begin(), again.end()), again.end());
  for (const std::uint32_t k : again) {
    Served& s = served(k);
    result_.output_tokens -= s.first_token == Time{} ? 0 : 1;
    s.first_token = s.transfer_start = s.transferred = {};
    s.die = -1;
    ++s.restarts;
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
  result_.restarted += static_cast<std::int64_t>(again.size());
  for (std::uint32_t p = 0; p < prefill_.size(); ++p) start_prefill(p);
}

void Service::come_back(const Outage& outage) {
  const auto i = static_cast<std::uint32_t>(outage.instance);
  if (outage.prefill) {
    prefill_[i].away = false;
    start_prefill(i);
  } else {
    decode_[i].come_back();
    admit();
  }
}

}  // namespace cm384::service
