#include "service/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "hw/error.h"
#include "service/decode_instance.h"
#include "service/event_line.h"
#include "service/prefill_times.h"

namespace cm384::service {
namespace {

Time of_ms(double ms) {
  return {std::llround(ms * 1e9)};
}
double seconds(Time time) {
  return time.us() * 1e-6;
}

class Service {
 public:
  Service(const RequestTrace& trace, const Deployment& deployment, const Library& library,
          const ServiceOptions& options)
      : trace_(trace),
        deployment_(deployment),
        options_(options),
        prefill_times_(deployment, library),
        steps_(library, deployment.decode_dies(), deployment.decode.mtp),
        pool_({deployment.cache.servers, blocks_of(deployment.cache.dram), blocks_of(deployment.cache.evs)}),
        prefill_(static_cast<std::size_t>(deployment.prefill.instances)) {
    for (int k = 0; k < deployment.decode.instances; ++k)
      decode_.emplace_back(deployment.decode, options.seed, k);
    result_.served.resize(trace.requests.size());
    followers_.reserve(trace.requests.size());
  }

  ServiceResult run() {
    for (std::size_t k = 0; k < trace_.requests.size(); ++k) {
      const Request& request = trace_.requests[k];
      if (request.follows >= 0) followers_.emplace(request.follows, static_cast<std::uint32_t>(k));
    }
    next_arrival();
    for (std::size_t k = 0; k < options_.outages.size(); ++k)
      push(options_.outages[k].at, Kind::outage, static_cast<std::uint32_t>(k));
    if (options_.sample > Time{}) push({}, Kind::sample, 0);
    while (!events_.empty()) {
      const Event event = events_.next();
      if (event.kind == Kind::sample && in_system_ == 0 && arrivals_ == trace_.requests.size()) continue;
      result_.request_seconds += static_cast<double>(in_system_) * seconds(event.at - now_);
      now_ = event.at;
      take(event);
    }
    result_.end = last_done_;
    result_.cache = pool_.counts();
    return std::move(result_);
  }

 private:
  using Kind = Event::Kind;
  struct PrefillInstance {
    bool busy = false, away = false;
    std::uint32_t epoch = 0;
    std::vector<std::uint32_t> batch;  // prompts that end with it
    std::vector<Time> link_free;       // of each die's RDMA link
  };

  void push(Time at, Kind kind, std::uint32_t subject, std::uint32_t epoch = 0) {
    events_.push(at, kind, subject, epoch);
  }
  std::int64_t blocks_of(Bytes bytes) const {
    const std::int64_t tokens = std::max(1, trace_.block_tokens);
    return bytes.count / (tokens * deployment_.decode.token.count);
  }
  const Request& request(std::uint32_t k) const { return trace_.requests[k]; }
  Served& served(std::uint32_t k) { return result_.served[k]; }
  std::uint32_t tenant_of(const Request& r) const {
    return r.session % static_cast<std::uint32_t>(options_.tenants);
  }

  // Arrivals are taken from the trace one after another; those that follow others come when these have ended.
  void next_arrival() {
    while (next_ < trace_.requests.size() && trace_.requests[next_].follows >= 0) ++next_;
    if (next_ == trace_.requests.size()) return;
    push(trace_.requests[next_].arrival, Kind::arrival, static_cast<std::uint32_t>(next_));
    ++next_;
  }

  void take(const Event& event) {
    switch (event.kind) {
      case Kind::arrival:
        arrive(event.subject);
        break;
      case Kind::prefill_done:
        if (event.epoch == prefill_[event.subject].epoch) prefill_done(event.subject);
        break;
      case Kind::transferred:
        transferred(event.subject, event.epoch);
        break;
      case Kind::step_done:
        if (event.epoch == decode_[event.subject].epoch()) step_done(event.subject);
        break;
      case Kind::outage:
        go_away(options_.outages[event.subject], event.subject);
        break;
      case Kind::back:
        come_back(options_.outages[event.subject]);
        break;
      case Kind::sample:
        sample();
        break;
    }
  }

  void arrive(std::uint32_t k) {
    served(k).arrival = now_;
    ++in_system_;
    ++arrivals_;
    waiting_.push_back(k);
    if (request(k).follows < 0) next_arrival();
    for (std::uint32_t i = 0; i < prefill_.size(); ++i) start_prefill(i);
  }

  // First come, first served; of a prompt that is longer than a batch the whole takes several batches' time.
  void start_prefill(std::uint32_t i) {
    PrefillInstance& instance = prefill_[i];
    if (instance.busy || instance.away || waiting_.empty()) return;
    PrefillWork work;
    double read_ms = 0;
    instance.batch.clear();
    while (!waiting_.empty()) {
      const std::uint32_t k = waiting_.front();
      const Request& r = request(k);
      if (!instance.batch.empty() && work.tokens + r.prompt > deployment_.prefill.batch_tokens) break;
      waiting_.pop_front();
      Served& s = served(k);
      s.prefill_start = now_;
      s.instance = static_cast<std::int16_t>(i);
      read_ms += look_up(r, s);
      const double cached = s.cached_dram + s.cached_evs;
      work.add(r.prompt - cached, cached);
      result_.prompt_tokens += r.prompt;
      instance.batch.push_back(k);
    }
    result_.computed_tokens += static_cast<std::int64_t>(work.tokens);
    const StepTime time = prefill_times_.of(work);
    count(time, "a batch of prompts", work.tokens, 0);
    if (read_ms > 0) read_ms += deployment_.cache.latency.us() * 1e-3;
    const Time span = of_ms(time.ms + read_ms);
    result_.prefill_busy_s += seconds(span);
    ++result_.batches;
    instance.busy = true;
    push(now_ + span, Kind::prefill_done, i, instance.epoch);
  }

  // Time to read what is cached, ms.
  double look_up(const Request& r, Served& s) {
    s.cached_dram = s.cached_evs = 0;
    if (!deployment_.cache.on || r.blocks == 0) return 0;
    const PrefixHits hits = pool_.read(trace_.blocks_of(r), tenant_of(r));
    // The last token is computed in any case: the answer's first comes of it.
    const auto most = static_cast<std::int64_t>(r.prompt) - 1;
    s.cached_dram = static_cast<std::int32_t>(std::min(hits.dram * trace_.block_tokens, most));
    s.cached_evs = static_cast<std::int32_t>(std::min(hits.ssd * trace_.block_tokens, most - s.cached_dram));
    const auto token = static_cast<double>(deployment_.decode.token.count);
    return (s.cached_dram * token / static_cast<double>(deployment_.cache.dram_rate.bytes_per_second) +
            s.cached_evs * token / static_cast<double>(deployment_.cache.evs_rate.bytes_per_second)) *
           1e3;
  }

  void prefill_done(std::uint32_t i) {
    PrefillInstance& instance = prefill_[i];
    instance.busy = false;
    for (const std::uint32_t k : instance.batch) {
      const Request& r = request(k);
      served(k).first_token = now_;
      ++result_.output_tokens;
      // Written behind the batch, by whoever has time: no one waits for it.
      if (deployment_.cache.on && r.blocks > 0) pool_.write(trace_.blocks_of(r), tenant_of(r));
      if (r.output == 1) {
        done(k);
      } else {
        ready_.push_back(k);
      }
    }
    instance.batch.clear();
    admit();
    start_prefill(i);
  }

  // Contexts go to dies that have a slot and room, in the order in which they were made.
  void admit() {
    while (!ready_.empty()) {
      const std::uint32_t k = ready_.front();
      const Request& r = request(k);
      const auto bytes = static_cast<std::int64_t>(r.prompt + r.output) * deployment_.decode.token.count;
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
  void transfer(std::uint32_t k, int instance, int die, std::int64_t bytes) {
    DecodeInstance& decode = decode_[static_cast<std::size_t>(instance)];
    const double peak = decode.reserve(die, bytes);
    result_.kv_peak = std::max(result_.kv_peak, peak);
    PrefillInstance& from = prefill_[static_cast<std::size_t>(served(k).instance)];
    const int senders = 2 * deployment_.prefill.npus, group = std::max(1, decode.dies() / senders);
    from.link_free.resize(static_cast<std::size_t>(senders));
    Time& sender = from.link_free[static_cast<std::size_t>(std::min(die / group, senders - 1))];
    Time& receiver = decode.link_free(die);
    const double sent =
        static_cast<double>(request(k).prompt) * static_cast<double>(deployment_.decode.token.count);
    const Time span = of_ms(sent / static_cast<double>(options_.rdma.bytes_per_second) * 1e3);
    const Time end = std::max({now_, sender, receiver}) + span;
    sender = receiver = end;
    result_.rdma_busy_s += seconds(span);
    served(k).die = static_cast<std::int16_t>(instance * decode.dies() + die);
    served(k).steps = decode.steps_for(request(k).output - 1, k);
    ++transferring_;
    push(end + options_.rdma_latency, Kind::transferred, k, decode.epoch());
  }

  void transferred(std::uint32_t k, std::uint32_t epoch) {
    --transferring_;
    if (served(k).die < 0) return;
    const auto i = static_cast<std::uint32_t>(served(k).die / decode_[0].dies());
    if (epoch != decode_[i].epoch()) return;  // to an instance that is gone: it waits again
    served(k).transferred = now_;
    const Request& r = request(k);
    decode_[i].join({k, served(k).die % decode_[i].dies(), r.prompt, r.output - 1, served(k).steps});
    start_step(i);
  }

  void start_step(std::uint32_t i) {
    DecodeInstance& decode = decode_[i];
    if (decode.stepping() || decode.away() || !decode.begin_step()) return;
    const DecodeInstance::Load load = decode.load(steps_.least_batch(), steps_.least_kv());
    const StepTime time = step_time(load);
    count(time, "a decode step", load.batch, load.kv);
    const Time span = of_ms(time.ms) + deployment_.decode.bubble;
    result_.decode_busy_s += seconds(span);
    result_.batch_sum += static_cast<double>(decode.requests());
    ++result_.steps;
    push(now_ + span, Kind::step_done, i, decode.epoch());
  }

  const StepTime& step_time(const DecodeInstance::Load& load) {
    const std::uint64_t key =
        static_cast<std::uint64_t>(load.batch) << 32 | static_cast<std::uint32_t>(load.kv);
    const auto [found, is_new] = known_steps_.try_emplace(key);
    if (is_new) found->second = steps_.at(load.batch, load.kv);
    return found->second;
  }

  void step_done(std::uint32_t i) {
    for (const DecodeInstance::Active& ended : decode_[i].end_step()) {
      result_.output_tokens += ended.tokens;
      const Request& r = request(ended.request);
      decode_[i].release(ended.die,
                         static_cast<std::int64_t>(r.prompt + r.output) * deployment_.decode.token.count);
      done(ended.request);
    }
    admit();
    start_step(i);
  }

  void done(std::uint32_t k) {
    served(k).done = last_done_ = now_;
    --in_system_;
    const auto [from, to] = followers_.equal_range(static_cast<std::int32_t>(k));
    for (auto it = from; it != to; ++it) push(now_ + request(it->second).arrival, Kind::arrival, it->second);
  }

  void go_away(const Outage& outage, std::uint32_t number) {
    const auto i = static_cast<std::size_t>(outage.instance);
    std::vector<std::uint32_t> again;
    if (outage.prefill) {
      again = std::move(prefill_[i].batch);
      prefill_[i].batch.clear();
      prefill_[i].away = true;
      prefill_[i].busy = false;
      ++prefill_[i].epoch;
    } else {
      again = decode_[i].lose_all();
      // Those on their way to it are lost as well.
      for (std::uint32_t k = 0; k < served_count(); ++k) {
        const Served& s = served(k);
        if (s.die >= 0 && s.die / decode_[i].dies() == outage.instance && s.done == Time{} &&
            s.transferred == Time{})
          again.push_back(k);
      }
      for (const std::uint32_t k : again) served(k).transferred = {};
    }
    std::ranges::sort(again);
    again.erase(std::unique(again.begin(), again.end()), again.end());
    for (const std::uint32_t k : again) result_.output_tokens -= served(k).first_token == Time{} ? 0 : 1;
    for (const std::uint32_t k : again) served(k).die = -1;
    waiting_.insert(waiting_.begin(), again.begin(), again.end());
    result_.restarted += static_cast<std::int64_t>(again.size());
    push(now_ + outage.duration, Kind::back, number);
    for (std::uint32_t p = 0; p < prefill_.size(); ++p) start_prefill(p);
  }
  std::uint32_t served_count() const { return static_cast<std::uint32_t>(result_.served.size()); }

  void come_back(const Outage& outage) {
    const auto i = static_cast<std::uint32_t>(outage.instance);
    if (outage.prefill) {
      prefill_[i].away = false;
      start_prefill(i);
    } else {
      decode_[i].come_back();
      admit();
    }
  }

  void sample() {
    Occupancy o;
    o.at = now_;
    o.waiting = static_cast<std::int32_t>(waiting_.size());
    o.waiting_decode = static_cast<std::int32_t>(ready_.size());
    o.transferring = transferring_;
    for (const PrefillInstance& instance : prefill_) o.prefill_busy += instance.busy ? 1 : 0;
    for (const DecodeInstance& decode : decode_) {
      o.decoding += decode.requests();
      o.kv_share += decode.kv_share() / static_cast<double>(decode_.size());
    }
    o.dram_blocks = pool_.dram_blocks();
    o.evs_blocks = pool_.ssd_blocks();
    result_.occupancy.push_back(o);
    push(now_ + options_.sample, Kind::sample, 0);
  }

  void count(const StepTime& time, const char* what, double first, double second) {
    if (time.evidence == Evidence::extrapolated && !options_.allow_extrapolation)
      throw InputError(
          fmt::format("{} ({:.0f}, {:.0f} tokens of context) is outside of what the library has measured; "
                      "allowed: requests within it, or --allow-extrapolation",
                      what, first, second));
    result_.evidence_s[static_cast<std::size_t>(time.evidence)] += time.ms * 1e-3;
    result_.worst_error = std::max(result_.worst_error, time.error);
  }

  const RequestTrace& trace_;
  const Deployment& deployment_;
  const ServiceOptions& options_;
  PrefillTimes prefill_times_;
  DecodeSteps steps_;
  BlockPool pool_;
  std::vector<PrefillInstance> prefill_;
  std::vector<DecodeInstance> decode_;
  EventLine events_;
  Time now_{}, last_done_{};
  std::size_t next_ = 0, arrivals_ = 0;
  std::int64_t in_system_ = 0;
  std::int32_t transferring_ = 0;
  std::deque<std::uint32_t> waiting_, ready_;
  std::unordered_multimap<std::int32_t, std::uint32_t> followers_;
  std::unordered_map<std::uint64_t, StepTime> known_steps_;
  ServiceResult result_;
};

}  // namespace

ServiceResult serve(const RequestTrace& trace, const Deployment& deployment, const Library& library,
                    const ServiceOptions& options) {
  check_service(trace, deployment, options);
  return Service(trace, deployment, library, options).run();
}

}  // namespace cm384::service
