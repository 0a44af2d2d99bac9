package collect

import "time"

// Readings take at most share of the processor time of the processes that are read, unless each of
// them would be read less often than the last plan says.
const (
	share = 0.01
	// aim is the part of it that a plan may take, as what it takes is not known exactly.
	aim           = 0.8
	mostUnwatched = 3 // rounds without a viewer

	// costOfPage is what a reading takes of its process, and assumedCost what it takes of the
	// console until that is measured.
	costOfPage  = 350 * time.Microsecond
	assumedCost = 350 * time.Microsecond
	// fixedPart is the part of what the console uses that does not depend on its readings: it asks
	// the registry, and sends updates.
	fixedPart = 0.5
	// measureFor is how long what the console uses is measured, and over how long what the
	// processes use is averaged: the rates of few calls go up and down. It is the least time until
	// processes are read less often, too.
	measureFor  = 10 * time.Second
	measureLast = 20 // readings, at least
	// risen is by how much the processes must use more than before for that to count at once.
	risen = 2
)

// plan says how often processes are read.
type plan struct {
	period           time.Duration // between two rounds
	others, detailed int           // rounds in which each process is read once: detailed if a viewer sees its service in detail
}

// The plans while a viewer looks and otherwise, the best one first. Processes of a service that a
// viewer sees in detail are the last ones to be read less often.
var (
	watchedPlans = []plan{
		{Watched, 1, 1}, {Watched, 2, 1}, {Watched, 3, 1}, {Watched, 4, 1}, {Watched, 4, 2}, {2 * Watched, 2, 2}, {Slowest / 2, 2, 2},
	}
	unwatchedPlans = []plan{{Unwatched, 1, 1}, {Unwatched, 2, 2}, {Unwatched, mostUnwatched, mostUnwatched}}
)

// of returns the plan for a number of processes, which a large system reads in more turns.
func (p plan) of(processes int) plan {
	if p.period < Unwatched {
		p.others = max(p.others, turns(processes, p.period))
	}
	return p
}

// reads returns the readings per second of a number of processes, of which some are seen in detail.
func (p plan) reads(processes, detailed int) float64 {
	rounds := float64(processes-detailed)/float64(p.others) + float64(detailed)/float64(p.detailed)
	return rounds / p.period.Seconds()
}

// interval returns the longest time between two readings of a process.
func (p plan) interval() time.Duration { return time.Duration(max(p.others, p.detailed)) * p.period }

// sparing reports whether there are few calls, and a viewer looks.
func (p plan) sparing() bool { return p.period > Watched && p.period < Unwatched }

// budget decides how often processes are read, by what that costs and what they spend. Its methods
// belong to the goroutine of the rounds.
type budget struct {
	// used returns the processor time that the console has used; nil: it is not known.
	used func() time.Duration

	watched bool      // a viewer looks
	looked  time.Time // when look was called last
	since   time.Time // of the measurement that runs; zero: none does
	spent   time.Duration
	reads   int64
	known   struct{ watched, unwatched spending }

	chosen  int       // place of the plan
	decided time.Time // when that was chosen; zero: it was not
	use     float64   // processors that the processes use, on average
	counted time.Time // when use was
}

// spending is what the console uses. The zero value means that it was not measured.
type spending struct {
	processors float64
	reads      float64 // per second
}

// look notes whether a viewer looks, and what the console uses with a number of readings so far.
func (b *budget) look(now time.Time, reads int64, watched bool) {
	if watched != b.watched {
		b.watched, b.decided, b.since = watched, time.Time{}, time.Time{}
	}
	passed, period := now.Sub(b.looked), Unwatched
	if watched {
		period = Watched
	}
	if b.looked = now; passed > 3*period {
		b.since = time.Time{} // the console was stopped meanwhile
	}
	if b.used == nil {
		return
	}
	n := reads - b.reads
	if !b.since.IsZero() && (now.Sub(b.since) < measureFor || n < measureLast) {
		return
	}
	spent := b.used()
	if !b.since.IsZero() {
		seconds := now.Sub(b.since).Seconds()
		*b.of() = spending{(spent - b.spent).Seconds() / seconds, float64(n) / seconds}
	}
	b.since, b.spent, b.reads = now, spent, reads
}

func (b *budget) of() *spending {
	if b.watched {
		return &b.known.watched
	}
	return &b.known.unwatched
}

// plan returns how often processes are read, of which a number are seen in detail, if they use a
// number of processors together. It reads them more often as soon as it may, and less often after a
// while.
func (b *budget) plan(now time.Time, processes, detailed int, processors float64) plan {
	plans := unwatchedPlans
	if b.watched {
		plans = watchedPlans
	}
	if processors <= 0 && b.use <= 0 {
		b.decided = time.Time{} // they have not been read twice, or their system does not say it
		return plans[0].of(processes)
	}
	b.count(now, processors)
	best := len(plans) - 1
	for i := range best {
		if b.of().at(plans[i].of(processes).reads(processes, detailed)) <= aim*share*b.use {
			best = i
			break
		}
	}
	if b.decided.IsZero() || best < b.chosen || best > b.chosen && now.Sub(b.decided) >= measureFor {
		b.chosen, b.decided = best, now
	}
	return plans[b.chosen].of(processes)
}

// count adds what the processes use now to the average. What is much more than before takes its
// place: it is seen by the processes that were read last, which are some of all.
func (b *budget) count(now time.Time, processors float64) {
	passed := min(now.Sub(b.counted), measureFor)
	if b.counted.IsZero() || processors > risen*b.use {
		b.use = processors
	} else {
		b.use += (processors - b.use) * float64(passed) / float64(measureFor)
	}
	b.counted = now
}

// at returns how many processors the console and the processes use for a number of readings per
// second.
func (s spending) at(reads float64) float64 {
	pages := reads * costOfPage.Seconds()
	if s.processors <= 0 || s.reads <= 0 {
		return pages + reads*assumedCost.Seconds()
	}
	return pages + s.processors*(fixedPart+(1-fixedPart)*reads/s.reads)
}

// processors returns how many processors the processes of a list use together.
func processors(list []*process) (sum float64) {
	counted := make(map[string]bool, len(list))
	for _, p := range list {
		if v := &p.view; v.Error == "" && v.Window > 0 && !counted[v.ID] {
			counted[v.ID] = true // one process may have several pages
			sum += v.CPU
		}
	}
	return sum
}
