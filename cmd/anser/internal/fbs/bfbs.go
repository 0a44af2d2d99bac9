package fbs

import (
	"cmp"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Binary says what a binary schema contains. The zero value leaves out what a verifier does not
// need.
type Binary struct {
	Comments bool // documentation, as flatc's --bfbs-comments
	Builtins bool // attributes of the language, as --bfbs-builtins
}

// Marshal returns the binary schema of the file and all that it includes, as flatc writes it with
// --schema --binary: a buffer of FlatBuffers' reflection.fbs. Other than there, defaults beyond
// those of int64 are kept by their bits.
func (o Binary) Marshal(f *File) []byte {
	w := &binaryWriter{Builder: flatbuffers.NewBuilder(4096), options: o, objects: make(map[*Object]int), enums: make(map[*Enum]int)}
	var objects []*Object
	var enums []*Enum
	var services []*Service
	for other := range f.visible {
		objects = append(objects, other.Objects...)
		enums = append(enums, other.Enums...)
		services = append(services, other.Services...)
	}
	slices.SortFunc(objects, func(a, b *Object) int { return cmp.Compare(a.FullName(), b.FullName()) })
	slices.SortFunc(enums, func(a, b *Enum) int { return cmp.Compare(a.FullName(), b.FullName()) })
	slices.SortFunc(services, func(a, b *Service) int { return cmp.Compare(a.FullName(), b.FullName()) })
	for i, o := range objects {
		w.objects[o] = i
	}
	for i, e := range enums {
		w.enums[e] = i
	}
	w.nothing = w.CreateString("")
	places := make(map[*Object]flatbuffers.UOffsetT)
	var objectList, enumList, serviceList []flatbuffers.UOffsetT
	for _, o := range objects {
		places[o] = w.object(o)
		objectList = append(objectList, places[o])
	}
	for _, e := range enums {
		enumList = append(enumList, w.enum(e))
	}
	for _, s := range services {
		serviceList = append(serviceList, w.service(s, places))
	}
	objectsAt, enumsAt, servicesAt := w.vector(objectList), w.vector(enumList), w.vector(serviceList)
	identifier, extension := w.CreateString(f.Identifier), w.CreateString(f.Extension)
	w.StartObject(8)
	w.PrependUint64Slot(6, features(objects), 0)
	w.PrependUOffsetTSlot(5, servicesAt, 0)
	if f.Root != nil {
		w.PrependUOffsetTSlot(4, places[f.Root], 0)
	}
	w.PrependUOffsetTSlot(3, extension, 0)
	w.PrependUOffsetTSlot(2, identifier, 0)
	w.PrependUOffsetTSlot(1, enumsAt, 0)
	w.PrependUOffsetTSlot(0, objectsAt, 0)
	w.FinishWithFileIdentifier(w.EndObject(), []byte("BFBS"))
	return w.FinishedBytes()
}

// features returns the bits of what not all languages have.
func features(objects []*Object) (bits uint64) {
	for _, o := range objects {
		for _, f := range o.Fields {
			switch {
			case f.Type.Base == Array:
				bits |= 1
			case f.Type.Series() && f.Type.Element == Union:
				bits |= 2
			case f.Type.Base.Scalar() && f.Optional:
				bits |= 4
			}
			if f.Default.Given {
				bits |= 8
			}
		}
	}
	return bits
}

// binaryWriter writes a binary schema.
type binaryWriter struct {
	*flatbuffers.Builder
	options Binary
	objects map[*Object]int
	enums   map[*Enum]int
	nothing flatbuffers.UOffsetT // an empty string
}

func (w *binaryWriter) vector(list []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	return w.CreateVectorOfTables(list)
}

func (w *binaryWriter) doc(lines []string) flatbuffers.UOffsetT {
	if len(lines) == 0 || !w.options.Comments {
		return 0
	}
	list := make([]flatbuffers.UOffsetT, len(lines))
	for i, line := range lines {
		list[i] = w.CreateString(line)
	}
	return w.vector(list)
}

func (w *binaryWriter) attributes(list Attributes) flatbuffers.UOffsetT {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Attribute) int { return cmp.Compare(a.Name, b.Name) })
	var offsets []flatbuffers.UOffsetT
	for _, a := range sorted {
		if knownAttributes[a.Name] && !w.options.Builtins {
			continue
		}
		text := a.Value
		if text == "" && !a.Text {
			text = "0"
		}
		name, value := w.CreateString(a.Name), w.CreateString(text)
		w.StartObject(2)
		w.PrependUOffsetTSlot(1, value, 0)
		w.PrependUOffsetTSlot(0, name, 0)
		offsets = append(offsets, w.EndObject())
	}
	if len(offsets) == 0 {
		return 0
	}
	return w.vector(offsets)
}

func (w *binaryWriter) typeOf(t Type) flatbuffers.UOffsetT {
	index := int32(-1)
	if t.Object != nil {
		index = int32(w.objects[t.Object])
	} else if t.Enum != nil {
		index = int32(w.enums[t.Enum])
	}
	size := func(b Base) uint32 { return uint32(max(b.Size(), 1)) }
	element := size(t.Element)
	if t.Base == Vector && t.Element == Obj && t.Object.Struct {
		element = uint32(t.Object.Size)
	}
	w.StartObject(6)
	w.PrependUint32Slot(5, element, 0)
	w.PrependUint32Slot(4, size(t.Base), 4)
	w.PrependInt32Slot(2, index, -1)
	w.PrependUint16Slot(3, uint16(t.Length), 0)
	w.PrependByteSlot(1, byte(t.Element), 0)
	w.PrependByteSlot(0, byte(t.Base), 0)
	return w.EndObject()
}

func (w *binaryWriter) object(o *Object) flatbuffers.UOffsetT {
	order := make([]int, len(o.Fields))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(o.Fields[a].Name, o.Fields[b].Name) })
	fields := make([]flatbuffers.UOffsetT, len(order))
	for i, id := range order {
		fields[i] = w.field(o.Fields[id], id)
	}
	name, list := w.CreateString(o.FullName()), w.vector(fields)
	attributes, doc := w.attributes(o.Attributes), w.doc(o.Doc)
	w.StartObject(8)
	w.PrependUOffsetTSlot(7, w.nothing, 0)
	w.PrependUOffsetTSlot(6, doc, 0)
	w.PrependUOffsetTSlot(5, attributes, 0)
	w.PrependInt32Slot(4, int32(o.Size), 0)
	w.PrependInt32Slot(3, int32(o.Align), 0)
	w.PrependUOffsetTSlot(1, list, 0)
	w.PrependUOffsetTSlot(0, name, 0)
	w.PrependBoolSlot(2, o.Struct, false)
	return w.EndObject()
}

func (w *binaryWriter) field(f *Field, id int) flatbuffers.UOffsetT {
	name, t := w.CreateString(f.Name), w.typeOf(f.Type)
	attributes, doc := w.attributes(f.Attributes), w.doc(f.Doc)
	w.StartObject(14)
	w.PrependFloat64Slot(5, f.Default.Float, 0)
	w.PrependInt64Slot(4, f.Default.Int, 0)
	w.PrependUOffsetTSlot(10, doc, 0)
	w.PrependUOffsetTSlot(9, attributes, 0)
	w.PrependUOffsetTSlot(1, t, 0)
	w.PrependUOffsetTSlot(0, name, 0)
	w.PrependUint16Slot(12, uint16(f.Padding), 0)
	w.PrependUint16Slot(3, uint16(f.Offset), 0)
	w.PrependUint16Slot(2, uint16(id), 0)
	w.PrependBoolSlot(13, f.Offset64, false)
	w.PrependBoolSlot(11, f.Optional, false)
	w.PrependBoolSlot(8, f.Key, false)
	w.PrependBoolSlot(7, f.Required, false)
	w.PrependBoolSlot(6, f.Deprecated, false)
	return w.EndObject()
}

func (w *binaryWriter) enum(e *Enum) flatbuffers.UOffsetT {
	values := make([]flatbuffers.UOffsetT, len(e.Values))
	for i, v := range e.Values {
		name, t := w.CreateString(v.Name), w.typeOf(v.Type)
		attributes, doc := w.attributes(v.Attributes), w.doc(v.Doc)
		w.StartObject(6)
		w.PrependInt64Slot(1, v.Number, 0)
		w.PrependUOffsetTSlot(5, attributes, 0)
		w.PrependUOffsetTSlot(4, doc, 0)
		w.PrependUOffsetTSlot(3, t, 0)
		w.PrependUOffsetTSlot(0, name, 0)
		values[i] = w.EndObject()
	}
	name, list, t := w.CreateString(e.FullName()), w.vector(values), w.typeOf(Type{Base: e.Type, Enum: e})
	attributes, doc := w.attributes(e.Attributes), w.doc(e.Doc)
	w.StartObject(7)
	w.PrependUOffsetTSlot(6, w.nothing, 0)
	w.PrependUOffsetTSlot(5, doc, 0)
	w.PrependUOffsetTSlot(4, attributes, 0)
	w.PrependUOffsetTSlot(3, t, 0)
	w.PrependUOffsetTSlot(1, list, 0)
	w.PrependUOffsetTSlot(0, name, 0)
	w.PrependBoolSlot(2, e.Union, false)
	return w.EndObject()
}

func (w *binaryWriter) service(s *Service, places map[*Object]flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	calls := make([]flatbuffers.UOffsetT, len(s.Methods))
	for i, m := range s.Methods {
		name, attributes, doc := w.CreateString(m.Name), w.attributes(m.Attributes), w.doc(m.Doc)
		w.StartObject(5)
		w.PrependUOffsetTSlot(4, doc, 0)
		w.PrependUOffsetTSlot(3, attributes, 0)
		w.PrependUOffsetTSlot(2, places[m.Reply], 0)
		w.PrependUOffsetTSlot(1, places[m.Request], 0)
		w.PrependUOffsetTSlot(0, name, 0)
		calls[i] = w.EndObject()
	}
	name, list := w.CreateString(s.FullName()), w.vector(calls)
	attributes, doc := w.attributes(s.Attributes), w.doc(s.Doc)
	w.StartObject(5)
	w.PrependUOffsetTSlot(4, w.nothing, 0)
	w.PrependUOffsetTSlot(3, doc, 0)
	w.PrependUOffsetTSlot(2, attributes, 0)
	w.PrependUOffsetTSlot(1, list, 0)
	w.PrependUOffsetTSlot(0, name, 0)
	return w.EndObject()
}
