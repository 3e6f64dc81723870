#include <algorithm>

#include "traces/fixed_math.h"
#include "workloads/service/context_links.h"
#include "workloads/service/service.h"

namespace cm384::service {

// Contexts go to dies that have a slot and room, in the order in which they were made.
void Service::admit() {
  while (!ready_.empty()) {
    const std::uint32_t k = ready_.front();
    const Request& r = request(k);
    const std::int64_t bytes = context_of(r);
    int chosen = -1;
    std::int64_t least = INT64_MAX;
    int die = -1;
    for (std::size_t d = 0; d < decode_.size(); ++d) {
      const auto [candidate, load] = decode_[d].best_die(bytes);
      if (candidate >= 0 && load < least) {
        chosen = static_cast<int>(d);
        die = candidate;
        least = load;
      }
    }
    if (chosen < 0) return;
    ready_.pop_front();
    transfer(k, chosen, die, bytes);
  }
}

// By the published mapping a die of decode asks one die of each prefill instance; both links take one
// context at a time.
void Service::transfer(std::uint32_t k, int instance, int die, std::int64_t bytes) {
  DecodeInstance& decode = decode_[static_cast<std::size_t>(instance)];
  const double peak = decode.reserve(die, bytes);
  result_.kv_peak = std::max(result_.kv_peak, peak);
  PrefillInstance& from = prefill_[static_cast<std::size_t>(served(k).instance)];
  const ContextMapping mapping{2 * deployment_.prefill.npus, 1, decode.dies()};
  from.link_free.resize(static_cast<std::size_t>(mapping.prefill_tp));
  Time& sender = from.link_free[static_cast<std::size_t>(mapping.prefill_rank(die))];
  const double sent =
      static_cast<double>(request(k).prompt) * static_cast<double>(deployment_.decode.token.count);
  const auto [begin, end] = take_links(now_, sent, options_.rdma, sender, decode.link_free(die));
  served(k).transfer_start = begin;
  Activity activity{Activity::Kind::transfer, false, instance, die, begin, end};
  activity.request = k;
  tell(activity);
  result_.rdma_busy_s += seconds(end - begin);
  served(k).die = instance * decode.dies() + die;
  served(k).steps = decode.steps_for(request(k).output - 1, k);
  ++transferring_;
  push(end + options_.rdma_latency, Kind::transferred, k, static_cast<std::uint32_t>(served(k).restarts));
}

void Service::transferred(std::uint32_t k, std::uint32_t attempt) {
  --transferring_;
  if (attempt != static_cast<std::uint32_t>(served(k).restarts)) return;  // it was lost meanwhile
  const auto i = static_cast<std::uint32_t>(served(k).die / decode_[0].dies());
  served(k).transferred = now_;
  const Request& r = request(k);
  decode_[i].join({k, served(k).die % decode_[i].dies(), r.prompt, r.output - 1, served(k).steps});
  start_step(i);
  const auto from = static_cast<std::uint32_t>(served(k).instance);
  --prefill_[from].held;
  leave_prefill(from);
}

void Service::start_step(std::uint32_t i) {
  DecodeInstance& decode = decode_[i];
  if (decode.stepping() || !decode.runs()) return;
  // Those of a step that was lost and begins again have joined before.
  for (const DecodeInstance::Active& active : decode.joining()) stepping_[i].joined.push_back(active.request);
  if (!decode.begin_step()) return;
  const DecodeInstance::Load load = decode.load(steps_.least_batch(), steps_.least_kv());
  const StepTime time = step_time(load);
  count(time, "a decode step ({:.0f}, {:.0f} tokens of context)", load.batch, load.kv);
  step_samples_.see(now_, static_cast<int>(i), decode, load);
  const double slower = traces::power(deployment_.recovery.plane_step, static_cast<unsigned>(planes_.size()));
  Time more = of_ms(time.ms * (slower - 1));
  const int every = deployment_.decode.renew_every;
  if (every > 0 && ++stepping_[i].count % every == 0) {
    more += deployment_.decode.renew_time;
    ++result_.renewals;
  }
  result_.evidence_s[static_cast<std::size_t>(Evidence::parameter)] += seconds(more);
  const Time span = of_ms(time.ms) + more + deployment_.decode.bubble;
  result_.decode_busy_s += seconds(span);
  result_.batch_sum += static_cast<double>(decode.requests());
  ++result_.steps;
  Step& step = stepping_[i];
  step.begin = now_;
  step.end = now_ + span;
  step.load = load;
  step.requests = decode.requests();
  push(now_ + span, Kind::step_done, i, decode.epoch());
}

// A lost step was busy until now only.
void Service::end_step(std::uint32_t i, bool lost) {
  const Step& step = stepping_[i];
  result_.decode_busy_s -= seconds(step.end - now_);
  Activity activity{Activity::Kind::step, false, static_cast<int>(i), 0, step.begin, now_};
  activity.requests = step.requests;
  activity.tokens = step.load.kv;
  activity.lost = lost;
  tell(activity);
}

const StepTime& Service::step_time(const DecodeInstance::Load& load) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(load.batch) << 32 | static_cast<std::uint32_t>(load.kv);
  const auto [found, is_new] = known_steps_.try_emplace(key);
  if (is_new) found->second = steps_.at(load.batch, load.kv);
  return found->second;
}

void Service::count_gaps(Step& step) {
  const auto count = [&](Time from, std::size_t requests) {
    if (requests > 0)
      result_.gaps.push_back({(now_ - from).us() * 1e-3, static_cast<std::int32_t>(requests)});
  };
  for (const std::uint32_t k : step.joined) count(served(k).first_token, 1);
  count(step.last_end, static_cast<std::size_t>(step.requests) - step.joined.size());
  step.joined.clear();
  step.last_end = now_;
}

void Service::step_done(std::uint32_t i) {
  end_step(i, false);
  count_gaps(stepping_[i]);
  for (const DecodeInstance::Active& ended : decode_[i].end_step()) {
    result_.output_tokens += ended.tokens;
    const Request& r = request(ended.request);
    decode_[i].release(ended.die, context_of(r));
    done(ended.request);
  }
  admit();
  start_step(i);
  leave_decode(i);
}

}  // namespace cm384::service
