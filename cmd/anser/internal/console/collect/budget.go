package collect

import "time"

// Readings take at most share of the processor time of the processes that are read, unless each of
// them would be read less often than once in mostWatched or mostUnwatched rounds.
const (
	share         = 0.01
	mostWatched   = 2
	mostUnwatched = 3

	// costOfPage is what a reading takes of its process, and assumedCost what it takes of the
	// console until that is measured.
	costOfPage  = 350 * time.Microsecond
	assumedCost = 350 * time.Microsecond
	// fixedPart is the part of what the console uses that does not depend on its readings: it asks
	// the registry, and sends updates.
	fixedPart = 0.5
	// measureFor is how long what the console uses is measured, and how long a decision lasts: the
	// rates of few calls go up and down.
	measureFor  = 10 * time.Second
	measureLast = 20 // readings, at least
)

// budget decides how often processes are read, by what that costs and what they spend. Its methods
// belong to the goroutine of the rounds.
type budget struct {
	// used returns the processor time that the console has used; nil: it is not known.
	used func() time.Duration

	watched bool      // a viewer looks
	since   time.Time // of the measurement that runs; zero: none does
	spent   time.Duration
	reads   int64
	known   struct{ watched, unwatched spending }

	decided time.Time // when every was
	every   int
}

// spending is what the console uses. The zero value means that it was not measured.
type spending struct {
	processors float64
	reads      float64 // per second
}

// look notes whether a viewer looks, and what the console uses with a number of readings so far.
func (b *budget) look(now time.Time, reads int64, watched bool) {
	if watched != b.watched {
		b.watched, b.every, b.since = watched, 0, time.Time{}
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

// turns returns the number of rounds in which each of n processes is read once, if they use the
// number of processors that a function returns.
func (b *budget) turns(now time.Time, n int, processors func() float64) int {
	if b.every > 0 && now.Sub(b.decided) < measureFor {
		return b.every
	}
	use := processors()
	if use <= 0 {
		return 1 // they have not been read twice, or their system does not say it
	}
	period, most := Unwatched, mostUnwatched
	if b.watched {
		period, most = Watched, mostWatched
	}
	b.decided, b.every = now, most
	for turns := 1; turns < most; turns++ {
		if b.of().at(float64(n)/period.Seconds()/float64(turns)) <= share*use {
			b.every = turns
			break
		}
	}
	return b.every
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
