#include "store/refusals.h"

namespace leaf::refusal {
namespace {

std::string Quoted(std::string_view tag) { return "tag '" + std::string(tag) + "'"; }

}  // namespace

Error NoRow(std::string_view tag) { return {Code::kNotFound, Quoted(tag) + " has no row"}; }

Error Exists(std::string_view tag) { return {Code::kConflict, Quoted(tag) + " has a row already"}; }

Error Late(std::string_view kind) {
  return {Code::kUnavailable,
          std::string(kind) + ": the deadline passed before the statement began"};
}

Error TooWeak(std::string_view subject, Durability level, Durability demanded) {
  return Error{Code::kUnavailable, std::string(subject) + " is only '" +
                                       std::string(DurabilityName(level)) +
                                       "'-durable, but store.min_durability is '" +
                                       std::string(DurabilityName(demanded)) +
                                       "'; make it more durable or demand less"};
}

Error Changed() {
  return Error{Code::kUnavailable,
               "the server is another than before or has other settings; it will be examined anew"};
}

Error Exhausted(std::string_view tag, std::int64_t max_id, std::int64_t add) {
  return {Code::kExhausted, Quoted(tag) + " has max_id " + std::to_string(max_id) + ": " +
                                std::to_string(add) + " more ids do not fit below 2^63"};
}

std::string HasNull(std::string_view tag, bool max_id) {
  return Quoted(tag) + " has " + (max_id ? "max_id" : "step") + " NULL";
}

std::optional<Error> BadRow(std::string_view tag, std::int64_t max_id, std::int64_t step,
                            std::int64_t count) {
  if (step <= 0)
    return Error{Code::kUnavailable,
                 Quoted(tag) + " has step " + std::to_string(step) + "; it must be above 0"};
  if (max_id < 0)
    return Error{Code::kUnavailable,
                 Quoted(tag) + " has the negative max_id " + std::to_string(max_id)};
  if (max_id > kMaxEnd - count) return Exhausted(tag, max_id, count);
  return std::nullopt;
}

}  // namespace leaf::refusal
