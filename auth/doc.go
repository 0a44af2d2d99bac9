// Package auth has ways for clients to prove who they are to servers, and rules for what they may call:
//
//	tokens, err := auth.OpenTokens("tokens.json")
//	policy, err := auth.OpenPolicy("policy.json")
//	s := anser.NewServer(anser.TLS(config), anser.Authenticate(tokens), anser.Authorize(policy))
//
//	c, err := anser.Dial("10.0.0.7:8972", anser.TLS(config), auth.TokenFile("token"))
//
// There are tokens, certificates of mutual TLS with revocation lists, and signatures with a shared secret. Files
// are followed on disk: what is in them holds a few seconds after they changed, for connections that stand too.
// Package auth/jwt, a module of its own, has JSON Web Tokens. docs/security.md says which one is for what.
package auth
