package gateway

import "net/http"

// Session is the response of /api/v1/session.
type Session struct {
	User   string `json:"user,omitempty"` // absent if unknown
	Role   string `json:"role"`           // anybody, reader, submitter or admin
	Tokens bool   `json:"tokens"`         // the gateway has tokens
}

func (g *Gateway) session(w http.ResponseWriter, r *http.Request) error {
	who := identityOf(r.Context())
	s := Session{User: who.user, Role: who.role.String(), Tokens: g.options.Tokens != nil}
	return writeJSON(w, http.StatusOK, s)
}

// openSession stores the token in a cookie that scripts cannot read and
// that browsers do not send with requests from other sites.
func (g *Gateway) openSession(w http.ResponseWriter, r *http.Request) error {
	if g.options.Tokens != nil {
		http.SetCookie(w, g.cookie(r, tokenOf(r), 0))
	}
	return g.session(w, r)
}

func (g *Gateway) endSession(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, g.cookie(r, "", -1))
	return g.session(w, withIdentity(r, identity{}))
}

func (g *Gateway) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name:     sessionCookie,
		Value:    value,
		Path:     "/",
		MaxAge:   age,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   r.TLS != nil,
	}
}
