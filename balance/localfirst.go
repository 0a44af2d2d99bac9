package balance

// LocalFirst returns the balancer "local_first": endpoints on this machine, then those in the same
// zone, then the others; among equals it chooses like LeastActive. When the preferred ones are
// busy, with Here.Full attempts of this client each, calls go to the next ones, and return as soon
// as there is room.
//
// A further attempt of a call goes to the most local endpoint that it has not tried.
func LocalFirst(here Here) Balancer {
	hosts := here.hosts()
	rank := func(e *Endpoint) float64 {
		in := e.Instance()
		switch {
		case isHere(hosts, in.Address):
			return 0
		case here.Zone != "" && here.Zone == in.Zone:
			return 1
		}
		return 2
	}
	reason := func(_ bool, rank float64) Reason {
		return [...]Reason{PickedOnHost, PickedInZone, PickedFarther}[int(rank)]
	}
	return placed{
		algorithm{"local_first", func(endpoints []*Endpoint) Picker {
			return newTiered(endpoints, here.full(), rank, 0, reason)
		}, false},
		here.checkFull(),
	}
}
