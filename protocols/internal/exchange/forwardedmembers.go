package exchange

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/internal/jsonschema"
)

// shape is what a contract says of the members of a value in JSON. The zero value says nothing.
type shape struct {
	of    *shapedMessage // of the value, or of its elements
	list  bool           // it is an array of such values
	named bool           // it is an object with such values under any names
}

// shapedMessage is a message of Go types or of kiss-rpc.
type shapedMessage struct {
	names    []string
	fields   map[string]shape // by their names, also in lower case: encoding/json ignores the case
	inOrder  []shape          // of a tuple, which may be an array
	embedded []*shapedMessage // their members may be those of this message
}

// shaper makes the shapes of a contract, each once.
type shaper struct {
	schema *contract.Schema
	made   map[string]*shapedMessage
}

// learn remembers what the contract of a method that is forwarded in JSON says of its messages.
func (m *Method) learn() {
	if m.Contract == nil || m.Protobuf {
		return
	}
	s, err := m.Contract.Schema()
	if err != nil || s.Kind != contract.Go && s.Kind != contract.Kiss {
		return
	}
	m.Packs = true
	name := string(nameOf(&m.MethodType))
	i := strings.LastIndexByte(name, '.')
	service := s.Service(name[:max(i, 0)])
	if service == nil || service.Method(name[i+1:]) == nil {
		return
	}
	of := service.Method(name[i+1:])
	m.single = hasSingle(s, of)
	request := s.Message(of.Request)
	sh := &shaper{s, make(map[string]*shapedMessage)}
	if request != nil && request.Form == contract.InOrder && !jsonschema.IsTuple(request) {
		m.request = sh.typed(&request.Fields[0].Type) // a value that is not an object
		return
	}
	m.request = shape{of: sh.message(request)}
}

func (s *shaper) typed(t *contract.Type) shape {
	if t.Name != "message" {
		return shape{} // a scalar, or a type inside others that the contract does not describe
	}
	return shape{s.message(s.schema.Message(t.Of)), t.Repeated || t.Length > 0, t.Key != ""}
}

// message returns the shape of a message, or nil for one that is not described by its fields.
func (s *shaper) message(m *contract.Message) *shapedMessage {
	if m == nil || m.Form != contract.ByName && m.Form != contract.InOrder {
		return nil
	}
	if known := s.made[m.Name]; known != nil {
		return known
	}
	out := &shapedMessage{fields: make(map[string]shape, len(m.Fields))}
	s.made[m.Name] = out
	for i := range m.Fields {
		f := &m.Fields[i]
		name, of := cmp.Or(f.JSON, f.Name), s.typed(&f.Type)
		out.names = append(out.names, name)
		out.fields[name] = of
		if lower := strings.ToLower(name); !slices.Contains(out.names, lower) {
			out.fields[lower] = of
		}
		if m.Form == contract.InOrder {
			out.inOrder = append(out.inOrder, of)
		} else if of.of != nil && name == f.Type.Of[strings.LastIndexByte(f.Type.Of, '.')+1:] {
			out.embedded = append(out.embedded, of.of) // it may be a pointer that is embedded
		}
	}
	return out
}

// member returns the shape of the member with a name in quotes, or the error that there is none.
func (m *shapedMessage) member(quoted []byte) (shape, error) {
	if f, ok := m.fields[string(quoted[1:len(quoted)-1])]; ok {
		return f, nil
	}
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		return shape{}, err
	}
	f, ok := m.field(name, 0)
	if !ok {
		return shape{}, (&members{names: m.names}).errUnknown(name)
	}
	return f, nil
}

// field returns the shape of a member, in whatever case its name is.
func (m *shapedMessage) field(name string, depth int) (_ shape, ok bool) {
	if f, ok := m.fields[strings.ToLower(name)]; ok {
		return f, true
	}
	if depth == maxEmbedded {
		return shape{}, false
	}
	for _, inner := range m.embedded {
		if f, ok := inner.field(name, depth+1); ok {
			return f, true
		}
	}
	return shape{}, false
}

// maxEmbedded is how deep messages are taken for embedded in others.
const maxEmbedded = 4

// checkMembers returns an error for a member of a valid JSON text that its message does not have.
func (s shape) checkMembers(text []byte) error {
	if s.of == nil {
		return nil
	}
	w := memberWalk{text: text}
	return w.value(s)
}

// memberWalk goes through a JSON text that is known to be valid.
type memberWalk struct {
	text []byte
	at   int
}

// next returns the next byte that is not a space.
func (w *memberWalk) next() byte {
	for w.text[w.at] == ' ' || w.text[w.at] == '\t' || w.text[w.at] == '\n' || w.text[w.at] == '\r' {
		w.at++
	}
	return w.text[w.at]
}

func (w *memberWalk) value(s shape) error {
	switch w.next() {
	case '{':
		return w.object(s)
	case '[':
		return w.array(s)
	case '"':
		w.str()
	default:
		for w.at < len(w.text) && !strings.ContainsRune(",]} \t\r\n", rune(w.text[w.at])) {
			w.at++
		}
	}
	return nil
}

// str goes over a string, and returns it with its quotes.
func (w *memberWalk) str() []byte {
	from := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[from:w.at]
}

func (w *memberWalk) object(s shape) error {
	for w.at++; w.next() != '}'; {
		name := w.str()
		w.next()
		w.at++ // the colon
		var of shape
		switch {
		case s.of == nil || s.list:
		case s.named:
			of = shape{of: s.of}
		default:
			var err error
			if of, err = s.of.member(name); err != nil {
				return err
			}
		}
		if err := w.value(of); err != nil {
			return err
		}
		if w.next() == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}

func (w *memberWalk) array(s shape) error {
	i := 0
	for w.at++; w.next() != ']'; i++ {
		var of shape
		switch {
		case s.of == nil || s.named:
		case s.list:
			of = shape{of: s.of}
		case i < len(s.of.inOrder):
			of = s.of.inOrder[i]
		}
		if err := w.value(of); err != nil {
			return err
		}
		if w.next() == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}
