/* Encodes the index of a timeline's blocks. */
#include "harness/web/timeline/encode.h"

enum { EXACT_BITS = 52 }; /* exact integers in JavaScript, with room for a difference */

json_t *encode_count(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static void put_shapes(struct encoder *c, json_t *index)
{
	json_t *tree = json_array(), *list = json_array();

	for (uint32_t i = 0; i < c->shape_tree.n; i++)
		json_array_append_new(tree,
			json_pack("[i, i, i]", (int)c->shape_tree.list[i][0],
				(int)c->shape_tree.list[i][1], (int)c->shape_tree.list[i][2]));
	for (uint32_t i = 0; i < c->n_shapes; i++) {
		struct shape *s = &c->shapes[i];
		json_t *about = json_array();

		json_array_append_new(about, json_integer(s->slices));
		for (uint32_t k = 0; k < s->depth; k++) {
			struct timeline_column *v = &s->values[k];

			json_array_append_new(about,
				json_integer(
					(json_int_t)v->size * 2 + (v->most >> EXACT_BITS != 0)));
			column_bytes(&c->blocks[ARGS], v->data, v->size);
		}
		json_array_append_new(list, about);
	}
	json_object_set_new(index, "shape_tree", tree);
	json_object_set_new(index, "shapes", list);
}

static json_t *json_tracks(struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->t->n_tracks; i++) {
		const struct track *k = &c->t->tracks[i];

		json_array_append_new(list,
			json_pack("[i, i, i, O]", (int)k->parent, (int)k->kind,
				(int)encode_word(c, k->name), json_array_get(c->lanes, i)));
	}
	return list;
}

static json_t *json_marks(struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->t->n_marks; i++) {
		const struct mark *k = &c->t->marks[i];

		json_array_append_new(list,
			json_pack("[i, i, o, o, i]", (int)k->kind, (int)k->track,
				encode_count(ns_between(c->t->from_ns, k->start_ns)),
				encode_count(ns_between(c->t->from_ns, k->end_ns)),
				(int)encode_word(c, k->text)));
	}
	return list;
}

static json_t *json_notes(struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->t->n_notes; i++)
		json_array_append_new(list,
			json_pack("[i, i]", (int)encode_word(c, c->t->notes[i].term),
				(int)encode_word(c, c->t->notes[i].text)));
	return list;
}

static json_t *json_categories(struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->t->n_categories; i++)
		json_array_append_new(list, json_integer(encode_word(c, c->t->categories[i])));
	return list;
}

static json_t *json_rows(struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->t->n_rows; i++) {
		json_t *cells = json_array();

		for (uint32_t k = 0; k < c->t->rows[i].n; k++)
			json_array_append_new(
				cells, json_integer(encode_word(c, c->t->rows[i].cells[k])));
		json_array_append_new(list, cells);
	}
	return list;
}

static json_t *json_kinds(const struct encoder *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->kinds.n; i++)
		for (size_t k = 0; k < TUPLE; k++)
			json_array_append_new(list, json_integer(c->kinds.list[i][k]));
	return list;
}

json_t *encode_index(struct encoder *c)
{
	struct timeline *t = c->t;
	json_t *index = json_object(), *counters = encode_counters(c);
	char origin[32];

	snprintf(origin, sizeof(origin), "%lld", (long long)t->from_ns);
	json_object_set_new(index, "version", json_integer(1));
	json_object_set_new(index, "title", json_integer(encode_word(c, t->title)));
	json_object_set_new(index, "run", json_integer(encode_word(c, t->run)));
	json_object_set_new(index, "origin_ns", json_string(origin));
	json_object_set_new(index, "span_ns", encode_count(ns_between(t->from_ns, t->to_ns)));
	json_object_set_new(index, "slices", encode_count(c->n));
	json_object_set_new(index, "sums", encode_count(c->n_sums));
	json_object_set_new(index, "summed", encode_count(c->n_summed));
	json_object_set_new(index, "least_ns", encode_count((uint64_t)detail_least_ns(&c->detail)));
	json_object_set_new(index, "by_request", json_boolean(c->detail.by_request));
	json_object_set_new(index, "arrows", encode_count(c->n_arrows));
	json_object_set_new(index, "all_arrows", encode_count(spill_count(&t->arrows)));
	json_object_set_new(index, "counters_cut", encode_count(c->counters_cut));
	json_object_set_new(
		index, "panes", json_pack("[i, i]", (int)t->panes[0], (int)t->panes[1]));
	json_object_set_new(index, "all_arrows_shown", json_boolean(t->view & TIMELINE_ALL_ARROWS));
	json_object_set_new(index, "about_shown", json_boolean(t->view & TIMELINE_ABOUT));
	json_object_set_new(index, "categories", json_categories(c));
	json_object_set_new(index, "mended", encode_count(t->mended));
	json_object_set_new(index, "kinds", json_kinds(c));
	json_object_set_new(index, "tracks", json_tracks(c));
	json_object_set_new(index, "marks", json_marks(c));
	json_object_set_new(index, "notes", json_notes(c));
	json_object_set_new(index, "table", json_rows(c));
	json_object_set_new(index, "counters", counters);
	put_shapes(c, index);
	return index;
}
