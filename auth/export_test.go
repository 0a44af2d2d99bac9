package auth

// ParsePolicy parses the rules in a document.
func ParsePolicy(doc []byte) (*Policy, error) {
	p := new(Policy)
	return p, p.load("policy.json", doc)
}

// ParseTokens parses the tokens in a document.
func ParseTokens(doc []byte) (*Tokens, error) {
	t := new(Tokens)
	return t, t.load("tokens.json", doc)
}

// ParseKeys parses the keys in a document.
func ParseKeys(doc []byte) (*Signed, error) {
	s := new(Signed)
	return s, s.load("keys.json", doc)
}

// ParseRevocations parses the revocation lists in a file.
func ParseRevocations(content []byte) (*Certificates, error) {
	c := new(Certificates)
	return c, c.load([]string{"crl.pem"}, [][]byte{content})
}
