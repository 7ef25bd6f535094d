#include "config/config_keys.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/assert.h"
#include "codec/http1/message.h"

namespace leaf::config {
namespace {

void Assign(bool& target, const Value& value) { target = value.flag; }
void Assign(int& target, const Value& value) { target = static_cast<int>(value.number); }
void Assign(std::int64_t& target, const Value& value) { target = value.number; }
void Assign(Duration& target, const Value& value) { target = Duration(value.number); }
void Assign(std::string& target, const Value& value) { target = value.text; }
void Assign(std::vector<std::string>& target, const Value& value) { target = value.list; }

void Assign(Durability& target, const Value& value) {
  for (const auto& [name, level] : {std::pair{"volatile", Durability::kVolatile},
                                    {"process", Durability::kProcess},
                                    {"power", Durability::kPower},
                                    {"replicated", Durability::kReplicated}}) {
    if (value.text == name) target = level;
  }
}

void Assign(log::Format& target, const Value& value) {
  target = value.text == "json" ? log::Format::kJson : log::Format::kText;
}

void Assign(log::Level& target, const Value& value) {
  for (const auto& [name, level] : {std::pair{"debug", log::Level::kDebug},
                                    {"info", log::Level::kInfo},
                                    {"warn", log::Level::kWarn},
                                    {"error", log::Level::kError}}) {
    if (value.text == name) target = level;
  }
}

/// Writes the value to config.*section.*member.
template <auto kSection, auto kMember>
void Set(Config& config, const Value& value) {
  Assign(config.*kSection.*kMember, value);
}
template <auto kMember>
constexpr auto SetServer = &Set<&Config::server, kMember>;
template <auto kMember>
constexpr auto SetStore = &Set<&Config::store, kMember>;
template <auto kMember>
constexpr auto SetSegment = &Set<&Config::segment, kMember>;
template <auto kMember>
constexpr auto SetSnowflake = &Set<&Config::snowflake, kMember>;
template <auto kMember>
constexpr auto SetCompat = &Set<&Config::compat, kMember>;
template <auto kMember>
constexpr auto SetLog = &Set<&Config::log, kMember>;

void SetFailoverSkip(Config& config, const Value& value) { config.failover_skip = value.number; }
/// For keys whose text is interpreted with others (store.url, store.password_file).
void SetElsewhere(Config&, const Value&) {}

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs, kMinute = 60 * kSecond,
                       kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::int64_t kMaxLong = std::numeric_limits<std::int64_t>::max();
/// Below 2^30, from where on a Java node beside us doubles the step to a negative number.
constexpr std::int64_t kMaxStep = 1'000'000'000;

using S = Config::Server;
using G = Config::Segment;
using F = Config::Snowflake;
using C = Config::Compat;

constexpr auto kNow = Availability::kNow;
constexpr auto kLater = Availability::kLater;

constexpr Key Text(std::string_view name, std::string_view fallback, decltype(Key::apply) apply) {
  return {.name = name, .type = Type::kText, .fallback = fallback, .apply = apply};
}
constexpr Key Bool(std::string_view name, std::string_view fallback, decltype(Key::apply) apply) {
  return {.name = name, .type = Type::kBool, .fallback = fallback, .apply = apply};
}
constexpr Key Number(Type type, std::string_view name, std::string_view fallback, std::int64_t min,
                     std::int64_t max, decltype(Key::apply) apply) {
  return {
      .name = name, .type = type, .fallback = fallback, .bounds = {min, max, {}}, .apply = apply};
}
constexpr Key Integer(std::string_view name, std::string_view fallback, std::int64_t min,
                      std::int64_t max, decltype(Key::apply) apply) {
  return Number(Type::kInteger, name, fallback, min, max, apply);
}
constexpr Key Time(std::string_view name, std::string_view fallback, std::int64_t min,
                   std::int64_t max, decltype(Key::apply) apply) {
  return Number(Type::kDuration, name, fallback, min, max, apply);
}
constexpr Key Size(std::string_view name, std::string_view fallback, std::int64_t min,
                   std::int64_t max, decltype(Key::apply) apply) {
  return Number(Type::kSize, name, fallback, min, max, apply);
}
constexpr Key Choice(std::string_view name, std::string_view fallback, std::string_view choices,
                     decltype(Key::apply) apply) {
  return {.name = name,
          .type = Type::kChoice,
          .fallback = fallback,
          .bounds = {0, 0, choices},
          .apply = apply};
}
constexpr Key Later(Type type, std::string_view name, std::string_view fallback,
                    std::string_view leaf_names = {}) {
  return {.name = name,
          .type = type,
          .fallback = fallback,
          .leaf_names = leaf_names,
          .availability = kLater};
}
constexpr Key Named(Key key, std::string_view leaf_names) {
  key.leaf_names = leaf_names;
  return key;
}
constexpr Key Dependent(Key key) {
  key.dependent = true;
  return key;
}

constexpr Key kListen = {.name = "server.listen",
                         .type = Type::kList,
                         .fallback = "127.0.0.1:8080",
                         .leaf_names = "server.port server.address",
                         .availability = kNow,
                         .apply = SetServer<&S::listen>};
constexpr Key kStoreUrl = {
    .name = "store.url",
    .type = Type::kText,
    .fallback = "sqlite:leafd.db",
    .leaf_names =
        "leaf.jdbc.url leaf.segment.url leaf.jdbc.username leaf.segment.username "
        "leaf.jdbc.password leaf.segment.password",
    .secret = true,
    .apply = SetElsewhere};
constexpr Key kRegistry = {.name = "snowflake.registry",
                           .type = Type::kText,
                           .fallback = "store",
                           .leaf_names = "leaf.snowflake.zk.address leaf.snowflake.address",
                           .secret = true,
                           .apply = SetElsewhere};
constexpr Key kPolicy = {.name = "segment.policy",
                         .type = Type::kChoice,
                         .fallback = "leaf",
                         .bounds = {0, 0, "leaf|fixed"},
                         .later_choices = "headroom",
                         .apply = SetSegment<&G::policy>};
constexpr auto kKeys = std::to_array<Key>({
    kListen,
    Text("server.admin_listen", "127.0.0.1:8081", SetServer<&S::admin_listen>),
    Bool("server.probes_on_main", "false", SetServer<&S::probes_on_main>),
    Integer("server.threads", "0", 0, 512, SetServer<&S::threads>),
    Dependent(Text("server.state_dir", "", SetServer<&S::state_dir>)),
    Time("server.drain", "10s", 0, kHour, SetServer<&S::drain>),
    Time("server.drain_delay", "0s", 0, kHour, SetServer<&S::drain_delay>),
    Dependent(
        Integer("server.max_connections", "10000", 1, 10'000'000, SetServer<&S::max_connections>)),
    Integer("server.max_connections_per_ip", "0", 0, 10'000'000,
            SetServer<&S::max_connections_per_ip>),
    Size("server.max_request_line", "8KiB", 256, kMiB, SetServer<&S::max_request_line>),
    Size("server.max_header", "16KiB", kKiB, kMiB, SetServer<&S::max_header>),
    Integer("server.max_header_fields", "64", 8, http1::Request::kMaxHeaders,
            SetServer<&S::max_header_fields>),
    Size("server.max_body", "64KiB", 0, 16 * kMiB, SetServer<&S::max_body>),
    Time("server.header_timeout", "5s", 100 * kMs, 10 * kMinute, SetServer<&S::header_timeout>),
    Time("server.idle_timeout", "60s", 100 * kMs, kDay, SetServer<&S::idle_timeout>),

    kStoreUrl,
    Text("store.password_file", "", SetElsewhere),
    Text("store.table", "leaf_alloc", SetStore<&StoreOptions::table>),
    Time("store.timeout", "1s", 10 * kMs, kMinute, SetStore<&StoreOptions::timeout>),
    Choice("store.min_durability", "power", "volatile|process|power|replicated",
           SetStore<&StoreOptions::min_durability>),
    Number(Type::kAutoInteger, "store.failover_skip", "auto", 1, kMaxLong / 2, SetFailoverSkip),

    Named(Bool("segment.enabled", "true", SetSegment<&G::enabled>), "leaf.segment.enable"),
    kPolicy,
    Later(Type::kDuration, "segment.headroom", "10m"),
    Integer("segment.waste", "50000000", 1, kMaxLong / 1024, SetSegment<&G::waste>),
    Time("segment.wait", "3s", kMs, 10 * kMinute, SetSegment<&G::wait>),
    Integer("segment.max_waiters", "100000", 1, 10'000'000, SetSegment<&G::max_waiters>),
    Integer("segment.max_list", "10000", 1, 1'000'000, SetSegment<&G::max_list>),
    Integer("segment.max_count", "1000000", 1, kMaxStep, SetSegment<&G::max_count>),
    Time("segment.refresh", "60s", 100 * kMs, kDay, SetSegment<&G::refresh>),
    Integer("segment.step", "1000", 1, kMaxStep, SetSegment<&G::step>),
    Dependent(Bool("segment.auto_create", "true", SetSegment<&G::auto_create>)),
    Integer("segment.auto_create_limit", "10000", 1, 10'000'000, SetSegment<&G::auto_create_limit>),
    Bool("segment.require_marks", "false", SetSegment<&G::require_marks>),

    Named(Bool("snowflake.enabled", "true", SetSnowflake<&F::enabled>), "leaf.snowflake.enable"),
    Choice("snowflake.layout", "leaf", "leaf|js53|custom", SetElsewhere),
    Text("snowflake.bits", "", SetElsewhere),
    Integer("snowflake.epoch_ms", "1288834974657", 0, 253'402'300'799'999, SetElsewhere),
    Time("snowflake.tick", "1ms", kMs, kMinute, SetElsewhere),
    kRegistry,
    Named(Text("snowflake.name", "leaf", SetElsewhere), "leaf.name"),
    Dependent(Named(Text("snowflake.identity", "", SetElsewhere), "leaf.snowflake.port")),
    Time("snowflake.lease", "10m", kSecond, kDay, SetSnowflake<&F::lease>),
    Time("snowflake.drift", "5s", 0, kHour, SetSnowflake<&F::drift>),
    Time("snowflake.wait", "3s", kMs, 10 * kMinute, SetSnowflake<&F::wait>),
    Integer("snowflake.max_count", "10000", 1, 100'000, SetSnowflake<&F::max_count>),

    Later(Type::kText, "auth.tokens_file", ""),
    Later(Type::kText, "tls.cert", ""),
    Later(Type::kText, "tls.key", ""),
    Later(Type::kText, "tls.client_ca", ""),

    Bool("compat.leaf", "false", SetCompat<&C::leaf>),
    Dependent(Bool("compat.cut_after_dot", "false", SetCompat<&C::cut_after_dot>)),
    Dependent(Bool("compat.pages_on_main", "false", SetCompat<&C::pages_on_main>)),
    Bool("compat.disabled_returns_zero", "false", SetCompat<&C::disabled_returns_zero>),

    Choice("log.format", "text", "text|json", SetLog<&Config::Log::format>),
    Choice("log.level", "info", "debug|info|warn|error", SetLog<&Config::Log::level>),
});

std::vector<std::string> KeyNames() {
  std::vector<std::string> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  return names;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string_view LastPart(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

std::span<const Key> Keys() { return kKeys; }

const Key* FindKey(std::string_view name) {
  const auto it =
      std::find_if(kKeys.begin(), kKeys.end(), [name](const Key& key) { return key.name == name; });
  return it == kKeys.end() ? nullptr : &*it;
}

bool IsSection(std::string_view name) {
  return std::any_of(kKeys.begin(), kKeys.end(), [name](const Key& key) {
    return key.name.substr(0, key.name.find('.')) == name;
  });
}

std::string EnvironmentName(const Key& key) {
  std::string name = "LEAFD_";
  for (const char c : key.name) {
    if (c == '.') {
      name += '_';
    } else {
      name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return name;
}

Value Fallback(const Key& key) {
  auto value = ReadValue(key.type, {Raw::Form::kPlain, std::string(key.fallback), {}}, key.bounds);
  LEAF_ASSERT(value.ok());
  return std::move(value).value();
}

std::vector<std::string> LeafNames() {
  std::vector<std::string> names;
  for (const Key& key : kKeys) {
    for (std::string_view rest = key.leaf_names; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      names.emplace_back(name);
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  return names;
}

std::string Suggest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 4) + 1;
  for (const std::string& candidate : candidates) {
    // A key in the wrong section is right in its last part only.
    const bool same_end = LastPart(candidate) == LastPart(word);
    const std::size_t distance = same_end ? std::min<std::size_t>(EditDistance(word, candidate), 2)
                                          : EditDistance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string SuggestionText(std::string_view word, std::span<const std::string> candidates) {
  const std::string name = Suggest(word, candidates);
  return name.empty() ? "" : " (did you mean \"" + name + "\"?)";
}

std::string SuggestKey(std::string_view word) { return SuggestionText(word, KeyNames()); }

}  // namespace leaf::config
