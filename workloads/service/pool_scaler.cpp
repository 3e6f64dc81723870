#include "workloads/service/pool_scaler.h"

namespace cm384::service {
namespace {

bool prefill_lacks(const ScaleSpec& spec, const PrefillPool::PoolLoad& load, int starting) {
  return load.waiting_tokens > spec.up_tokens * (load.open + starting);
}
bool decode_lacks(const ScaleSpec& spec, const DecodePool::PoolLoad& load, int starting) {
  return load.used > spec.up_use * (load.there + starting);
}
bool decode_spares(const ScaleSpec& spec, const DecodePool::PoolLoad& load) {
  return load.idlest && load.used < spec.down_use * (load.there - 1);
}

}  // namespace

ScaleChanges PoolScaler::decide(const PrefillPool::PoolLoad& prefill, const DecodePool::PoolLoad& decode,
                                Time now) {
  const ScaleSpec& spec = deployment_.scale;
  ScaleChanges changes;
  if (spec.move) move(prefill, decode, changes);
  if (spec.most > 0) {
    changes.start_prefill = start(
        true, prefill_lacks(spec, prefill, prefill_.starting) && prefill.open + prefill_.starting < spec.most,
        now);
    if (!changes.start_prefill && prefill.waiting_tokens == 0 && !prefill.idle.empty() &&
        prefill.open > deployment_.prefill.instances) {
      changes.end_prefill = prefill.idle.back();
      ++prefill_.down;
    }
  }
  if (spec.decode_most > 0) {
    changes.start_decode = start(
        false,
        decode_lacks(spec, decode, decode_.starting) && decode.open + decode_.starting < spec.decode_most,
        now);
    if (!changes.start_decode && decode_.starting == 0 && decode.open > deployment_.decode.instances &&
        decode_spares(spec, decode)) {
      changes.end_decode = decode.idlest;
      ++decode_.down;
    }
  }
  return changes;
}

bool PoolScaler::start(bool prefill, bool wanted, Time now) {
  if (!wanted) {
    if (npus_ != nullptr) npus_->withdraw(member_, prefill);
    return false;
  }
  if (npus_ != nullptr && !npus_->acquire(member_, prefill, npus_of(prefill), now)) return false;
  ++pool(prefill).starting;
  ++pool(prefill).up;
  ++pool(prefill).acquired;
  return true;
}

void PoolScaler::complete_end(bool prefill, Time now) {
  if (npus_ == nullptr || pool(prefill).acquired == 0) return;
  --pool(prefill).acquired;
  npus_->release(member_, npus_of(prefill), now);
}

void PoolScaler::release_all(Time now) {
  if (npus_ == nullptr) return;
  for (const bool prefill : {true, false}) {
    npus_->withdraw(member_, prefill);
    while (pool(prefill).acquired > 0) complete_end(prefill, now);
  }
}

// One change at a time: what it brings is seen before the next.
void PoolScaler::move(const PrefillPool::PoolLoad& prefill, const DecodePool::PoolLoad& decode,
                      ScaleChanges& changes) {
  const ScaleSpec& spec = deployment_.scale;
  const int ratio = deployment_.decode.npus / deployment_.prefill.npus;
  if (moving_ > 0) return;
  if (prefill_lacks(spec, prefill, 0)) {
    if (decode_spares(spec, decode)) changes.move_decode = decode.idlest;
  } else if (decode_lacks(spec, decode, 0) && prefill.waiting_tokens == 0 &&
             std::ssize(prefill.idle) >= ratio && prefill.open > ratio) {
    changes.move_prefill.assign(prefill.idle.end() - ratio, prefill.idle.end());
  }
  if (changes.move_decode || !changes.move_prefill.empty()) ++moving_;
}

void PoolScaler::add_to(ServiceResult& result) const {
  result.scaled_up = prefill_.up;
  result.scaled_down = prefill_.down;
  result.decode_scaled_up = decode_.up;
  result.decode_scaled_down = decode_.down;
  if (npus_ != nullptr) result.denied = npus_->denied(member_);
}

}  // namespace cm384::service
