#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace leaf {

/// The stable error codes of leafd: what a program may branch on. docs/errors.md has the table of
/// their form on each wire. A comment says whether the caller may try the same call again.
enum class Code : std::uint8_t {
  kInvalidArgument,   ///< malformed tag, count, id or body; never retry
  kUnauthenticated,   ///< no or wrong credentials; never retry
  kPermissionDenied,  ///< known caller, but not allowed; never retry
  kNotFound,          ///< no such tag; retry after creating it
  kConflict,          ///< it exists with other values; never retry
  kDisabled,          ///< this mode is switched off; never retry
  kExhausted,         ///< the id space of the tag or layout has ended; never retry
  kOverloaded,        ///< a bound was reached; retry later
  kRegressed,    ///< the store went back and the tag is stopped; retry after an operator's word
  kUnavailable,  ///< no id could be had from the store in time; retry
  kInternal,     ///< a fault of ours; never retry
};
inline constexpr int kCodeCount = 11;

/// The name on the wire, in snake_case ("not_found").
std::string_view CodeName(Code code) noexcept;

/// What went wrong: a code for programs and a sentence for people that says what, where and what to
/// do. Thread-compatible value.
struct Error {
  Code code = Code::kInternal;
  std::string message;
};

/// A value or an Error; a caller cannot drop it silently. T must not be Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// REQUIRES: !ok().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error)
      : error_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const noexcept { return error_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const& { return std::get<1>(error_); }
  Error&& error() && { return std::get<1>(std::move(error_)); }

 private:
  std::variant<std::monostate, Error> error_;
};

}  // namespace leaf

/// Returns the error of `expr` from the enclosing function, if it has one.
#define LEAF_RETURN_IF_ERROR(expr)                        \
  do {                                                    \
    if (auto leaf_result_ = (expr); !leaf_result_.ok()) { \
      return std::move(leaf_result_).error();             \
    }                                                     \
  } while (false)

#define LEAF_CONCAT_INNER(a, b) a##b
#define LEAF_CONCAT(a, b) LEAF_CONCAT_INNER(a, b)
/// LEAF_ASSIGN_OR_RETURN(auto x, F()): x is the value of F(), or F()'s error is returned.
#define LEAF_ASSIGN_OR_RETURN(lhs, expr) \
  LEAF_ASSIGN_OR_RETURN_IMPL(LEAF_CONCAT(leaf_result_, __LINE__), lhs, expr)
#define LEAF_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                               \
  if (!result.ok()) return std::move(result).error(); \
  lhs = std::move(result).value()
