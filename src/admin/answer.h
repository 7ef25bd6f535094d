#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codec/http1/message.h"
#include "leaf/result.h"

namespace leaf {

/// The forms of answer that the rooms of the admin API share. None may be cached.
http1::Response JsonAnswer(std::string body, int status = 200);
http1::Response TextAnswer(std::string_view content_type, std::string body);

/// "name":"text" and "name":number of a JSON object, without a comma.
void AppendField(std::string_view name, std::string_view text, std::string& out);
void AppendNumber(std::string_view name, std::int64_t number, std::string& out);

/// A problem of no such path.
http1::Response NoSuchPath(std::string_view path);
/// 405; `allow` as in the Allow field ("GET, HEAD").
http1::Response WrongMethod(std::string_view allow);
/// 501 for a method that leafd does not know.
http1::Response UnknownMethod(std::string_view method);

bool IsUnknown(http1::Method method) noexcept;
/// GET or HEAD.
bool IsRead(http1::Method method) noexcept;

/// The segments of a raw path, split at '/' and then decoded once each; kInvalidArgument for a bad
/// escape. "/a/b" has two, "/a/" has "a" and "".
Result<std::vector<std::string>> SplitPath(std::string_view path);

}  // namespace leaf
