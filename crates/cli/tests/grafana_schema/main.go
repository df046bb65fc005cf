// Checks dashboards against Grafana's published schema, from which its Foundation SDK is generated: every field of a
// dashboard, of its variables, panels, options and queries must be one that the schema has, with a value of its type.
// It runs no Grafana.
//
// Usage: grafana-schema FILE...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var strict, found dashboard.Dashboard
	if err := faults(strict.UnmarshalJSONStrict(text)); err != nil {
		return err
	}
	// What is read strictly loses its panels (v0.0.22).
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	if err := faults(found.Validate()); err != nil {
		return err
	}
	return kept(text, found)
}

// The SDK returns an empty list in the place of no error.
func faults(err error) error {
	var list cog.BuildErrors
	if errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}

// Some parts the SDK reads less strictly: it drops a field that the schema does not have.
func kept(text []byte, found dashboard.Dashboard) error {
	again, err := json.Marshal(found)
	if err != nil {
		return err
	}
	var before, after any
	if err := errors.Join(json.Unmarshal(text, &before), json.Unmarshal(again, &after)); err != nil {
		return err
	}
	return lost("", before, after)
}

// The fields of before that after has not, or with another value. An empty list may be left out.
func lost(path string, before, after any) error {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		var all error
		for name, value := range before {
			other, has := after[name]
			if list, is := value.([]any); is && !has && len(list) == 0 {
				continue
			}
			if !has {
				all = errors.Join(all, fmt.Errorf("%s: unexpected field '%s'", path, name))
				continue
			}
			all = errors.Join(all, lost(path+"/"+name, value, other))
		}
		return all
	case []any:
		after, _ := after.([]any)
		if len(before) != len(after) {
			return fmt.Errorf("%s: unexpected elements", path)
		}
		var all error
		for number := range before {
			all = errors.Join(all, lost(fmt.Sprintf("%s/%d", path, number), before[number], after[number]))
		}
		return all
	}
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("%s: %v became %v", path, before, after)
	}
	return nil
}

func main() {
	plugins.RegisterDefaultPlugins()
	status := 0
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			status = 1
		}
	}
	os.Exit(status)
}
