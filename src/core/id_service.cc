#include "core/id_service.h"

#include <string>

namespace leaf {

namespace {

bool IsPlain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == ':' || c == '-';
}

}  // namespace

bool IsPlainTag(std::string_view tag) noexcept {
  if (tag.empty() || tag.size() > kMaxTagBytes) return false;
  for (const char c : tag) {
    if (!IsPlain(c)) return false;
  }
  return true;
}

bool IdService::NextIds(Reader& reader, std::string_view tag, Waiter& waiter, Instant now,
                        Result<Ranges>& out) {
  if (engine_ == nullptr) {
    out = Error{Code::kDisabled, "segment mode is disabled (segment.enabled)"};
    return true;
  }
  if (tag.empty() || tag.size() > kMaxTagBytes) {
    out = Error{Code::kInvalidArgument, "a tag has 1 to 128 bytes"};
    return true;
  }
  if (waiter.count < 1 || waiter.count > limits_.max_count) {
    out = Error{Code::kInvalidArgument,
                "the count must be in 1 to " + std::to_string(limits_.max_count)};
    return true;
  }
  Range range;
  Tag* known = engine_->Find(reader, tag);
  if (known != nullptr && engine_->TryTake(reader, *known, waiter.count, range)) {
    Ranges ids;
    ids.at[0] = range;
    ids.size = 1;
    out = ids;
    return true;
  }
  return engine_->TakeOrPark(tag, waiter, now, out);
}

bool IdService::MintIds(Waiter& waiter, Instant now, Result<Minted>& out) {
  if (snowflake_ == nullptr) {
    out = no_snowflake_;
    return true;
  }
  const std::int64_t most = snowflake_->options().max_count;
  if (waiter.count < 1 || waiter.count > most) {
    out = Error{Code::kInvalidArgument, "the count must be in 1 to " + std::to_string(most)};
    return true;
  }
  Minted minted;
  if (snowflake_->TryMint(waiter.count, now, minted)) {
    out = minted;
    return true;
  }
  return snowflake_->MintOrPark(waiter, now, out);
}

}  // namespace leaf
