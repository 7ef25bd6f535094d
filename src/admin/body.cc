// The only source that knows Boost.JSON: its parser calls back for each value, so that repeated
// keys are seen, which a tree of values would swallow.

#include "admin/body.h"

#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <limits>
#include <map>
#include <string>
#include <variant>

namespace leaf {
namespace {

namespace json = boost::json;

using Value = std::variant<std::string, std::int64_t>;
using Fields = std::map<std::string, Value, std::less<>>;

/// Takes the calls of the parser. A call that returns false ends parsing; `trouble` says why.
struct FlatHandler {
  static constexpr std::size_t max_object_size = 16;
  static constexpr std::size_t max_array_size = 0;
  static constexpr std::size_t max_key_size = 64;
  static constexpr std::size_t max_string_size = 256;

  Fields fields;
  std::string trouble;

  bool Fail(std::string why, json::error_code& ec) {
    trouble = std::move(why);
    ec = json::error::syntax;
    return false;
  }
  bool WrongType(json::error_code& ec) {
    return Fail(inside_ ? "the value of \"" + key_ + "\" has the wrong type"
                        : "the body must be a JSON object",
                ec);
  }
  bool Put(Value value) {
    fields.insert_or_assign(key_, std::move(value));
    return true;
  }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) {
    if (inside_) return WrongType(ec);
    inside_ = true;
    return true;
  }
  bool on_object_end(std::size_t, json::error_code&) { return true; }
  bool on_array_begin(json::error_code& ec) { return WrongType(ec); }
  bool on_array_end(std::size_t, json::error_code&) { return true; }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    key_ = std::exchange(text_, {});
    return !fields.contains(key_) || Fail("the key \"" + key_ + "\" is repeated", ec);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    if (!inside_) return WrongType(ec);
    text_.append(part.data(), part.size());
    return Put(std::exchange(text_, {}));
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t number, json::string_view, json::error_code& ec) {
    return inside_ ? Put(number) : WrongType(ec);
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code& ec) {
    return Fail("the value of \"" + key_ + "\" is too large", ec);
  }
  bool on_double(double, json::string_view, json::error_code& ec) { return WrongType(ec); }
  bool on_bool(bool, json::error_code& ec) { return WrongType(ec); }
  bool on_null(json::error_code& ec) { return WrongType(ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool inside_ = false;
  std::string key_, text_;
};

Error Invalid(std::string message) { return {Code::kInvalidArgument, std::move(message)}; }

Result<Fields> ParseFlat(std::string_view body) {
  json::basic_parser<FlatHandler> parser(json::parse_options{});
  json::error_code ec;
  const std::size_t used = parser.write_some(false, body.data(), body.size(), ec);
  if (ec) {
    const std::string& trouble = parser.handler().trouble;
    return Invalid(trouble.empty() ? "the body is not JSON: " + ec.message() : trouble);
  }
  if (used != body.size()) return Invalid("the body goes on behind its JSON object");
  return std::move(parser.handler().fields);
}

/// Takes `key` out of `fields`; nullopt if it is not there.
std::optional<Value> TakeField(Fields& fields, std::string_view key) {
  const auto at = fields.find(key);
  if (at == fields.end()) return std::nullopt;
  auto value = std::move(at->second);
  fields.erase(at);
  return value;
}

Result<std::int64_t> TakeInteger(Fields& fields, std::string_view key, std::int64_t min,
                                 std::int64_t max) {
  const auto value = TakeField(fields, key);
  const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  if (number != nullptr && *number >= min && *number <= max) return *number;
  return Invalid("\"" + std::string(key) + "\" must be a whole number from " + std::to_string(min) +
                 " to " + std::to_string(max));
}

/// An id, which is a string because a JavaScript number would lose digits.
Result<std::int64_t> ToId(const Value& value) {
  constexpr std::int64_t kMaxId = std::numeric_limits<std::int64_t>::max() - 1;
  if (const auto* text = std::get_if<std::string>(&value);
      text != nullptr && !text->starts_with('-')) {
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), id);
    if (!text->empty() && error == std::errc() && end == text->data() + text->size() &&
        id <= kMaxId)
      return id;
  }
  return Invalid("\"max_id\" must be a decimal string from \"0\" to \"" + std::to_string(kMaxId) +
                 "\"");
}

Result<void> NothingLeft(const Fields& fields) {
  if (fields.empty()) return {};
  return Invalid("unknown key \"" + fields.begin()->first + "\"");
}

}  // namespace

Result<PutBody> ParsePutBody(std::string_view body) {
  LEAF_ASSIGN_OR_RETURN(Fields fields, ParseFlat(body));
  PutBody put;
  LEAF_ASSIGN_OR_RETURN(put.step,
                        TakeInteger(fields, "step", 1, std::numeric_limits<std::int32_t>::max()));
  if (const auto max_id = TakeField(fields, "max_id")) {
    LEAF_ASSIGN_OR_RETURN(put.max_id, ToId(*max_id));
  }
  LEAF_RETURN_IF_ERROR(NothingLeft(fields));
  return put;
}

Result<std::int64_t> ParseResumeBody(std::string_view body) {
  LEAF_ASSIGN_OR_RETURN(Fields fields, ParseFlat(body));
  // The line that the error of a stopped tag prints has no skip: quotes would not survive JSON.
  if (fields.empty()) return std::int64_t{0};
  LEAF_ASSIGN_OR_RETURN(const std::int64_t skip,
                        TakeInteger(fields, "skip", 0, std::numeric_limits<std::int64_t>::max()));
  LEAF_RETURN_IF_ERROR(NothingLeft(fields));
  return skip;
}

Result<void> ParseEmptyBody(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return {};
  LEAF_ASSIGN_OR_RETURN(const Fields fields, ParseFlat(body));
  return NothingLeft(fields);
}

}  // namespace leaf
