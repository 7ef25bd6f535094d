/* The right to mint: three servers, one worker. docs/snowflake.md states the rule, src/core/snowflake
 * (generator.h, right_keeper.cc) and src/registry/claim.h are the code.
 *
 * The registry holds one record (generation, owner, limit). A server is two processes: a keeper that
 * claims, extends, lowers, loses answers and crashes, and a minter that may sleep between any two
 * steps. Clocks are arbitrary: each claim reads whatever time it likes. Whatever happens, no time is
 * minted twice.
 *
 * Mutants (-DM1 ...) are the bugs that the rule exists for; the verifier has to find each.
 *   M1 an extension compares nothing
 *   M2 a take-over of a worker whose limit has not passed begins at the clock, not at the limit
 *   M3 minting goes beyond the limit while its extension is still under way
 *   M4 a clean stop lowers the limit without closing the generator first
 *   M5 a repeated claim that finds its own record begins at 0
 *   M6 a new right is opened without closing the old one
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef TIMES
#define TIMES 4      /* times are 0 .. TIMES-1; a limit is 0 .. TIMES */
#endif
#ifndef GENERATIONS
#define GENERATIONS 3   /* claims in one history */
#endif
#ifndef LEASE
#define LEASE 1
#endif
#define CLOSED 15
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* The registry. owner: server + 1, 0: a process that is gone. */
byte generation = 0, owner = 0, limit = 0;

bool minted[TIMES];

/* Each server's generator: the next time to mint (or CLOSED), and the limit that the minter reads. */
byte next[SERVERS] = CLOSED;
byte until[SERVERS];
byte reached[SERVERS];   /* the first time above all that this process minted */
/* What the minter has read before its compare-and-swap; gone with its process. */
byte place[SERVERS] = CLOSED;

inline any_time(t) {
  if
  :: t = 0
  :: t = 1
#if TIMES > 2
  :: t = 2
#endif
#if TIMES > 3
  :: t = 3
#endif
  fi
}

proctype Minter(byte me) {
  do
  :: d_step {
       place[me] == CLOSED && next[me] != CLOSED && next[me] < until[me] ->
       place[me] = next[me]
     }
  /* sleeps here as long as it likes; then one compare-and-swap */
  :: d_step {
       place[me] != CLOSED ->
       if
       :: next[me] == place[me] ->
          next[me] = place[me] + 1;
          reached[me] = MAX(reached[me], place[me] + 1);
          assert(!minted[place[me]]);
          minted[place[me]] = true
       :: else
       fi;
       place[me] = CLOSED
     }
  od
}

/* The process ends; another one, with another nonce and no memory, takes its place. */
inline end_of_process() {
  next[me] = CLOSED; until[me] = 0; reached[me] = 0; place[me] = CLOSED;
  if
  :: owner == me + 1 -> owner = 0
  :: else
  fi;
  held = false; mine = 0; floor = 0; asked = 0; wish = 0
}

proctype Keeper(byte me) {
  byte mine = 0, floor = 0, seen_g = 0, seen_l = 0, seen_o = 0, now = 0, asked = 0, wish = 0;
  bool held = false;
  do
  /* Claim: read the record, then compare-and-swap it. The answer may be lost. */
  :: !held && generation < GENERATIONS ->
     any_time(now);
     d_step { seen_g = generation; seen_l = limit; seen_o = owner; asked = MAX(asked, now) };
     if
     :: seen_o == me + 1 ->                                  /* a claim whose answer was lost */
        atomic {
          if
          :: generation == seen_g && owner == me + 1 ->
             held = true; mine = generation;
#ifdef M5
             floor = 0;
#else
             floor = asked;
#endif
             wish = limit
          :: else -> wish = 0
          fi
        }
#ifdef M2
     :: seen_o != me + 1 ->
#else
     :: seen_o != me + 1 && seen_l <= now ->                 /* its limit has passed, by our clock */
#endif
        atomic {
          if
          :: generation == seen_g && limit == seen_l && owner == seen_o ->
             generation = generation + 1;
             owner = me + 1;
             limit = MAX(seen_l, MIN(now + LEASE, TIMES));
             if
             :: held = true; mine = generation;
#ifdef M2
                floor = now;
#else
                floor = seen_l;
#endif
                wish = limit
             :: wish = 0                                     /* the answer is lost */
             fi
          :: else -> wish = 0
          fi
        }
     :: else -> wish = 0
     fi;
     if
     :: held ->
        /* Open: closed first, then the right, then the place, above all that was minted. */
#ifndef M6
        next[me] = CLOSED;
#endif
        until[me] = wish;
#ifdef M6
        next[me] = floor;
#else
        next[me] = MAX(floor, reached[me]);
#endif
     :: else
     fi;
     wish = 0; seen_g = 0; seen_l = 0; seen_o = 0; now = 0

  /* Extend: durable in the registry before the minter may use it. The answer may be lost. */
  :: held && until[me] < TIMES ->
     wish = MIN(until[me] + LEASE, TIMES);
#ifdef M3
     until[me] = wish;
#endif
     atomic {
       if
#ifdef M1
       :: true ->
#else
       :: generation == mine && owner == me + 1 ->
#endif
          limit = MAX(limit, wish);
          if
          :: true                                            /* answered */
          :: wish = 0                                        /* the answer is lost */
          fi
       :: else -> held = false; wish = 0                     /* lost: the old limit still holds */
       fi
     };
     if
     :: wish != 0 -> until[me] = MAX(until[me], wish)
     :: else
     fi;
     wish = 0

  /* Clean stop: no more ids, then the limit goes down to the first time not minted. */
  :: held ->
#ifdef M4
     wish = next[me];
#else
     atomic { wish = next[me]; next[me] = CLOSED };
#endif
     wish = MAX(wish, floor);
     atomic {
       if
       :: generation == mine && owner == me + 1 && wish < limit -> limit = wish
       :: else
       fi
     };
     atomic { end_of_process() }

  /* kill -9 at any moment between two steps */
  :: atomic { end_of_process() }
  od
}

init {
  atomic {
    byte i;
    for (i : 0 .. SERVERS - 1) {
      next[i] = CLOSED;
      run Minter(i);
      run Keeper(i)
    }
  }
}
