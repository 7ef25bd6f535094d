#include "state/right_file.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/serial_thread.h"
#include "state/slot_file.h"

namespace leaf {
namespace {

std::string Encode(const RightRecord& record) {
  std::string text;
  for (const std::int64_t number : {record.worker, record.generation, record.limit_ms,
                                    record.short_ms, std::int64_t{record.spent}}) {
    text += std::to_string(number) + " ";
  }
  return text + record.owner;
}

std::optional<RightRecord> Decode(std::string_view text) {
  RightRecord record;
  std::int64_t spent = 0;
  for (std::int64_t* number :
       {&record.worker, &record.generation, &record.limit_ms, &record.short_ms, &spent}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc() || end == text.data() + text.size() || *end != ' ')
      return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  record.spent = spent != 0;
  record.owner = text;
  return record;
}

}  // namespace

class RightFile::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::string path) : file_(std::move(path), "journal of the worker's right") {}

  Result<std::optional<Found>> Load() {
    const MutexLock lock(file_mu_);
    LEAF_ASSIGN_OR_RETURN(const auto found, file_.Load());
    if (!found) return std::optional<Found>();
    auto record = Decode(found->payload);
    if (!record) {
      return Error{Code::kUnavailable, "journal of the worker's right " + file_.path() +
                                           ": its record is not one of this version; remove it"};
    }
    return std::optional(Found{*std::move(record), found->same_file && found->same_boot});
  }

  void Save(RightRecord record, Done<bool> done, SerialThread& thread) {
    const MutexLock lock(mu_);
    record_ = std::move(record);
    done_.push_back(std::move(done));
    if (done_.size() == 1) thread.Post([self = shared_from_this()] { self->Write(); });
  }

 private:
  void Write() {
    RightRecord record;
    std::vector<Done<bool>> done;
    {
      const MutexLock lock(mu_);
      record = record_;
      done.swap(done_);
    }
    const Result<void> saved = [&] {
      const MutexLock lock(file_mu_);
      return file_.Save(Encode(record));
    }();
    for (const auto& tell : done) tell(saved.ok() ? Result<bool>(true) : saved.error());
  }

  Mutex file_mu_;
  SlotFile file_ GUARDED_BY(file_mu_);
  Mutex mu_;
  RightRecord record_ GUARDED_BY(mu_);
  std::vector<Done<bool>> done_ GUARDED_BY(mu_);
};

RightFile::RightFile(std::string path) : impl_(std::make_shared<Impl>(std::move(path))) {}
RightFile::~RightFile() = default;
Result<std::optional<RightJournal::Found>> RightFile::Load() { return impl_->Load(); }
void RightFile::Save(RightRecord record, Done<bool> done) {
  impl_->Save(std::move(record), std::move(done), thread_);
}

}  // namespace leaf
