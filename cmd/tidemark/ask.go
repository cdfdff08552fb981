package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// ask sends a request and shows what is answered; --json prints it as it came. in may be nil.
func ask[T any](ctx context.Context, m *cli.Main, method, path string, in any, show func(T) error) error {
	return with(ctx, m, func(c *client) error { return answer(ctx, m, c, method, path, in, show) })
}

// look is ask for what a GET answers.
func look[T any](ctx context.Context, m *cli.Main, path string, show func(T) error) error {
	return ask(ctx, m, http.MethodGet, path, nil, show)
}

// answer is ask with a client that is there.
func answer[T any](ctx context.Context, m *cli.Main, c *client, method, path string, in any, show func(T) error) error {
	var raw json.RawMessage
	if err := c.Call(ctx, method, path, in, &raw); err != nil {
		return err
	}
	if m.JSON {
		return m.PrintJSON(raw)
	}
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("answer of %s to %s %s: %w", c.Where, method, path, err)
	}
	return show(out)
}

// tell is ask for what has fields that --json leaves out: it prints what of the answer T has.
func tell[T any](ctx context.Context, m *cli.Main, method, path string, in any, show func(T) error) error {
	return with(ctx, m, func(c *client) error {
		var out T
		if err := c.Call(ctx, method, path, in, &out); err != nil {
			return err
		}
		return cli.Either(m, out, func() error { return show(out) })
	})
}

// listed shows a whole listing as a table, a row for each.
func listed[T any](ctx context.Context, m *cli.Main, path, name string, head []string, row func(T) []string) error {
	return with(ctx, m, func(c *client) error {
		list, err := pages[T](ctx, c, path, name)
		if err != nil {
			return err
		}
		return cli.Rows(m, list, head, func(add func(...string)) {
			for _, one := range list {
				add(row(one)...)
			}
		})
	})
}

// pageSize is how much of a listing is asked for at once.
const pageSize = 500

// pages reads a whole listing, page by page. The list is never nil.
func pages[T any](ctx context.Context, c *client, path, name string) ([]T, error) {
	return pagesOf[T](ctx, c, path, name, nil)
}

// pagesOf is pages with what the first page says beside its list, unless head is nil.
func pagesOf[T any](ctx context.Context, c *client, path, name string, head any) ([]T, error) {
	list := []T{}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for cursor := ""; ; {
		var page map[string]json.RawMessage
		if err := c.Get(ctx, path+sep+"limit="+strconv.Itoa(pageSize)+"&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return nil, err
		}
		var some []T
		next := ""
		err := json.Unmarshal(page[name], &some)
		if err == nil && page["next"] != nil {
			err = json.Unmarshal(page["next"], &next)
		}
		if err == nil && head != nil && cursor == "" {
			var raw []byte
			if raw, err = json.Marshal(page); err == nil {
				err = json.Unmarshal(raw, head)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("listing of %s: %w", name, err)
		}
		if list = append(list, some...); next == "" || next == cursor {
			return list, nil
		}
		cursor = next
	}
}
