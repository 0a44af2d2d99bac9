package transcode

import (
	"mime"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The fields of google.api.HttpBody, whose bytes are the body of a request or an answer as they
// are.
const (
	httpBodyName = "google.api.HttpBody"
	bodyType     = 1
	bodyData     = 2
)

func isHTTPBody(m protoreflect.MessageDescriptor) bool {
	return m.FullName() == httpBodyName && m.Fields().ByNumber(bodyType) != nil && m.Fields().ByNumber(bodyData) != nil &&
		m.Fields().ByNumber(bodyType).Kind() == protoreflect.StringKind && m.Fields().ByNumber(bodyData).Kind() == protoreflect.BytesKind
}

func isHTTPBodyField(f protoreflect.FieldDescriptor) bool {
	return f != nil && f.Message() != nil && !f.IsList() && !f.IsMap() && isHTTPBody(f.Message())
}

// RawRequest reports whether the body of a request is bytes of any content type, and RawReply
// whether that of the answer is.
func (b *Binding) RawRequest() bool { return b.rawRequest }

// RawReply is described with RawRequest.
func (b *Binding) RawReply() bool { return b.rawReply }

func setHTTPBody(m protoreflect.Message, r *Request) {
	m.Set(m.Descriptor().Fields().ByNumber(bodyType), protoreflect.ValueOfString(strings.ToValidUTF8(r.ContentType, "")))
	m.Set(m.Descriptor().Fields().ByNumber(bodyData), protoreflect.ValueOfBytes(r.Body))
}

// httpBody returns the bytes and the content type of an answer.
func httpBody(m protoreflect.Message) (data []byte, contentType string) {
	data = m.Get(m.Descriptor().Fields().ByNumber(bodyData)).Bytes()
	contentType = m.Get(m.Descriptor().Fields().ByNumber(bodyType)).String()
	if _, _, err := mime.ParseMediaType(contentType); err != nil {
		contentType = "application/octet-stream"
	}
	return data, contentType
}
