#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "leaf/result.h"

namespace leaf {

/// What a tag's key holds.
struct EtcdValue {
  std::int64_t max_id = 0;
  std::int64_t step = 0;

  /// {"max_id":"1001","step":1000}: max_id in quotation marks, since JSON's readers lose digits of
  /// numbers above 2^53.
  std::string Text() const;
  friend bool operator==(const EtcdValue&, const EtcdValue&) = default;
};

/// Reads exactly what Text writes. kUnavailable for anything else, with the key, the value and the
/// form that is wanted. Whether the numbers make sense is another question (refusal::BadRow).
Result<EtcdValue> ParseEtcdValue(std::string_view key, std::string_view value);

/// Bytes as a person can read them: in quotation marks, others than printable ASCII as \xNN, and
/// not longer than a line.
std::string ShownBytes(std::string_view bytes);

/// The first key after all that begin with `prefix`. REQUIRES: prefix is not empty and its last
/// byte not 0xFF.
std::string PrefixEnd(std::string prefix);

}  // namespace leaf
