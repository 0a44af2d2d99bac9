package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/model"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/respond"
	"github.com/anser-rpc/anser/registry"
)

const (
	maxPage  = 1000 // instances of an answer
	maxNamed = 200  // instances and tags of the answer for a service
)

// instancesOf returns up to n instances of a service, or of all services if it is "".
func (s *snapshot) instancesOf(service string, n int) []model.Instance {
	list := []model.Instance{}
	for _, v := range s.servicesNamed(service) {
		for _, in := range v.instances {
			if len(list) == n {
				return list
			}
			list = append(list, in.Instance)
		}
	}
	return list
}

// servicesNamed returns a service, or all services in the order of their names if it is "".
func (s *snapshot) servicesNamed(service string) (list []*serviceView) {
	if service != "" {
		if v := s.services[service]; v != nil {
			list = append(list, v)
		}
		return list
	}
	for _, name := range slices.Sorted(maps.Keys(s.services)) {
		list = append(list, s.services[name])
	}
	return list
}

// ordered returns the places of the instances in the order of their names. It is the same for
// snapshots with the same instances: to sort 60,000 takes 84 ms.
func (v *serviceView) ordered() []int {
	if known := v.order.Load(); known != nil {
		return *known
	}
	order := make([]int, len(v.instances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareNames(v.instances[a].ID, v.instances[b].ID) })
	v.order.Store(&order)
	return order
}

// keepOrders takes the orders of a snapshot before that still hold.
func (s *snapshot) keepOrders(before *snapshot) {
	for name, v := range s.services {
		was := before.services[name]
		if was == nil {
			continue
		}
		same := func(a, b *instanceView) bool { return a.ID == b.ID }
		if known := was.order.Load(); known != nil && slices.EqualFunc(v.instances, was.instances, same) {
			v.order.Store(known)
		}
	}
}

// looks are what an instance can look like, by the letters of model.MapRow.
var looks = map[string]byte{"ok": model.LooksOK, "slow": model.LooksSlow, "bad": model.LooksBad, "out": model.LooksOut, "stale": model.LooksStale, "unread": model.LooksUnread}

// meanP99 returns the average p99 of the instances.
func (v *serviceView) meanP99() time.Duration {
	if len(v.instances) == 0 {
		return 0
	}
	sum := time.Duration(0)
	for _, in := range v.instances {
		sum += in.P99
	}
	return sum / time.Duration(len(v.instances))
}

// look returns what an instance looks like among those of its service with an average p99.
func (in *instanceView) look(mean time.Duration) byte {
	unread := in.process == nil || in.process.Error == "" && in.process.Read.IsZero()
	stale := !in.Stale.IsZero() && !unread
	switch {
	case in.out() || in.Failed > 0 && !stale:
		return model.LooksBad // callers say so now, whether its page answers or not
	case stale:
		return model.LooksStale
	case in.State != registry.Up.String():
		return model.LooksOut
	case unread:
		return model.LooksUnread
	case mean > 0 && in.P99 > 2*mean:
		return model.LooksSlow
	}
	return model.LooksOK
}

// instanceOrders compare instances by a value.
var instanceOrders = map[string]func(a, b *instanceView) int{
	"service": func(a, b *instanceView) int { return compareNames(a.Service, b.Service) },
	"id":      func(a, b *instanceView) int { return compareNames(a.ID, b.ID) },
	"state": func(a, b *instanceView) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Health, b.Health))
	},
	"rate":    func(a, b *instanceView) int { return cmp.Compare(a.Rate, b.Rate) },
	"failed":  func(a, b *instanceView) int { return cmp.Compare(a.Figures.Failed, b.Figures.Failed) },
	"p50":     func(a, b *instanceView) int { return cmp.Compare(a.P50, b.P50) },
	"p90":     func(a, b *instanceView) int { return cmp.Compare(a.P90, b.P90) },
	"p99":     func(a, b *instanceView) int { return cmp.Compare(a.P99, b.P99) },
	"flight":  func(a, b *instanceView) int { return cmp.Compare(a.InFlight, b.InFlight) },
	"cpu":     func(a, b *instanceView) int { return cmp.Compare(a.CPU, b.CPU) },
	"memory":  func(a, b *instanceView) int { return cmp.Compare(a.Memory, b.Memory) },
	"weight":  func(a, b *instanceView) int { return cmp.Compare(a.Weight, b.Weight) },
	"zone":    func(a, b *instanceView) int { return compareNames(a.Zone, b.Zone) },
	"version": func(a, b *instanceView) int { return compareNames(a.Version, b.Version) },
	"address": func(a, b *instanceView) int { return compareNames(a.Address, b.Address) },
}

// instanceQuery asks for instances. Empty fields select all.
type instanceQuery struct {
	service, text string
	looks         string // letters
	first         string // id of an instance before all others
	order         func(a, b *instanceView) int
	offset, limit int
}

func instanceQueryOf(q url.Values) (out instanceQuery, p *respond.Error) {
	out = instanceQuery{service: q.Get("service"), text: strings.ToLower(q.Get("q")), first: q.Get("first")}
	if text := q.Get("look"); text != "" {
		for name := range strings.SplitSeq(text, ",") {
			letter, ok := looks[name]
			if !ok {
				return out, respond.Problem(http.StatusBadRequest, fmt.Sprintf("look=%q is unknown", model.Text(name)), "use some of "+strings.Join(slices.Sorted(maps.Keys(looks)), ", ")+", with commas")
			}
			out.looks += string(letter)
		}
	}
	if text := q.Get("sort"); text != "" {
		by, descending := strings.CutPrefix(text, "-")
		order := instanceOrders[by]
		if order == nil {
			return out, respond.Problem(http.StatusBadRequest, fmt.Sprintf("sort=%q is unknown", model.Text(text)), "use one of "+strings.Join(slices.Sorted(maps.Keys(instanceOrders)), ", ")+", after - for the largest first")
		}
		out.order = order
		if descending {
			out.order = func(a, b *instanceView) int { return order(b, a) }
		}
	}
	if out.offset, p = numberOf(q, "offset", 0); p == nil {
		out.limit, p = numberOf(q, "limit", maxPage)
	}
	out.limit = min(out.limit, maxPage)
	return out, p
}

// numberOf returns a value of a query that is a number from 0.
func numberOf(q url.Values, name string, otherwise int) (int, *respond.Error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, respond.Problem(http.StatusBadRequest, fmt.Sprintf("%s=%q is no number", name, model.Text(text)), "use a number from 0")
	}
	return n, nil
}

// takes reports whether a query selects an instance that looks in some way.
func (q *instanceQuery) takes(in *instanceView, look byte) bool {
	if q.looks != "" && strings.IndexByte(q.looks, look) < 0 {
		return false
	}
	if q.text == "" {
		return true
	}
	for _, field := range [...]string{in.ID, in.Service, in.Address, in.Zone, in.Version} {
		if strings.Contains(strings.ToLower(field), q.text) {
			return true
		}
	}
	return false
}

// each calls f for the instances that a query selects, and returns how many it has looked at.
func (s *snapshot) each(q *instanceQuery, f func(in *instanceView, look byte)) (total int) {
	for _, v := range s.servicesNamed(q.service) {
		mean := v.meanP99()
		total += len(v.instances)
		for _, i := range v.ordered() {
			in := v.instances[i]
			if look := in.look(mean); q.takes(in, look) {
				f(in, look)
			}
		}
	}
	return total
}

// instancePage returns a part of the instances that a query selects.
func (s *snapshot) instancePage(r *http.Request) (any, *respond.Error) {
	q, p := instanceQueryOf(r.URL.Query())
	if p != nil {
		return nil, p
	}
	list := []*instanceView{}
	page := model.InstancePage{Instances: []model.Instance{}}
	page.Total = s.each(&q, func(in *instanceView, _ byte) { list = append(list, in) })
	page.Matching, page.Offset = len(list), min(q.offset, len(list))
	if q.order != nil {
		slices.SortStableFunc(list, q.order)
	}
	if i := slices.IndexFunc(list, func(in *instanceView) bool { return q.first != "" && in.ID == q.first }); i > 0 {
		chosen := list[i]
		copy(list[1:], list[:i])
		list[0] = chosen
	}
	for _, in := range list[page.Offset:min(page.Offset+q.limit, len(list))] {
		page.Instances = append(page.Instances, in.Instance)
	}
	return page, nil
}

// mapValues are what the squares of the map of instances can show.
var mapValues = map[string]func(in *instanceView) float64{
	"p99":  func(in *instanceView) float64 { return float64(in.P99) },
	"rate": func(in *instanceView) float64 { return in.Rate },
	"cpu":  func(in *instanceView) float64 { return in.CPU },
}

// instanceMap returns how all instances that a query selects look, in one or two bytes each.
func (s *snapshot) instanceMap(r *http.Request) (any, *respond.Error) {
	q, p := instanceQueryOf(r.URL.Query())
	if p != nil {
		return nil, p
	}
	by := r.URL.Query().Get("by")
	value := mapValues[by]
	if value == nil && by != "" {
		return nil, respond.Problem(http.StatusBadRequest, fmt.Sprintf("by=%q is unknown", model.Text(by)), "use one of "+strings.Join(slices.Sorted(maps.Keys(mapValues)), ", ")+", or leave it out")
	}
	out := model.InstanceMap{Services: []model.MapRow{}}
	var values []float64
	var row *model.MapRow
	letters := []byte{}
	end := func() {
		if row != nil {
			row.Looks, letters = string(letters), letters[:0]
		}
	}
	out.Total = s.each(&q, func(in *instanceView, look byte) {
		if row == nil || row.Service != in.Service {
			end()
			out.Services = append(out.Services, model.MapRow{Service: in.Service})
			row = &out.Services[len(out.Services)-1]
		}
		letters = append(letters, look)
		out.Matching++
		if value != nil {
			v := value(in)
			values, out.Most = append(values, v), max(out.Most, v)
		}
	})
	end()
	if value != nil {
		shares(out.Services, values, out.Most)
	}
	return out, nil
}

// shares writes the share of each value in the largest one as a digit.
func shares(rows []model.MapRow, values []float64, most float64) {
	for i := range rows {
		n := len(rows[i].Looks)
		digits := make([]byte, n)
		for k, v := range values[:n] {
			share := 0.0
			if most > 0 {
				share = max(v, 0) / most
			}
			digits[k] = model.Shares[int(share*float64(len(model.Shares)-1)+0.5)]
		}
		rows[i].Shares, values = string(digits), values[n:]
	}
}

// tags returns the tags of the instances as name=value.
func (v *serviceView) tags() []string {
	set := make(map[string]bool)
	for _, in := range v.instances {
		for name, value := range in.Tags {
			if len(set) < maxNamed {
				set[name+"="+value] = true
			}
		}
	}
	return sorted(set)
}
