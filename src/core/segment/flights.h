#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "base/mutex.h"
#include "core/segment/segment_store.h"

namespace leaf {

class Tag;

/// Numbers the reservations under way, bounds them, and keeps the tags that are due for one.
/// Thread-safe; its lock is a leaf. One thread at a time sends, on behalf of all: so asks that
/// became due meanwhile leave in one batch, and a store that answers at once does not recurse.
class Flights {
 public:
  explicit Flights(int most) : most_(most) {}

  /// The tag is due; `urgent` ones, for which requests wait, go first. May be called twice.
  void Queue(Tag& tag, bool urgent);

  /// True: the caller sends until EndSending is true. False: another one does, and will see all.
  bool BeginSending();
  /// The next due tag, with a place for its flight; nullptr if there is none of either.
  Tag* TakeDue();
  bool EndSending();

  /// A number for the flight that has a place.
  Flight Depart(Tag& tag);
  /// Whose flight it was; from now on the number is unknown, and the caller alone settles it and
  /// then calls FreePlace. nullptr: unknown or settled already.
  Tag* Land(Flight flight);
  void FreePlace();

  int under_way() const;

 private:
  bool CanSend() const REQUIRES_LOCK(mu_);

  const int most_;
  mutable Mutex mu_;
  std::deque<Tag*> urgent_ GUARDED_BY(mu_), calm_ GUARDED_BY(mu_);
  std::unordered_map<Flight, Tag*> flying_ GUARDED_BY(mu_);
  Flight last_ GUARDED_BY(mu_) = 0;
  int places_ GUARDED_BY(mu_) = 0;  ///< taken
  bool sending_ GUARDED_BY(mu_) = false;
  bool asked_again_ GUARDED_BY(mu_) = false;
};

}  // namespace leaf
