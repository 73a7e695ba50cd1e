"""Functions: those that an agent's statement may call. They work on the values they are given alone."""

from __future__ import annotations

_LOGIC = """
    all and any array case cast coalesce exists greatest if ifnull iif in least not nullif or row
    try_cast tuple xor
"""
_NUMBERS = """
    abs acos asin atan atan2 avg ceil ceiling cos count degrees div exp floor group_concat int_div
    ln log log10 log2 max min mod pi pow power radians round sign sin sqrt stddev stddev_pop
    stddev_samp sum tan total trunc var_pop var_samp variance variance_pop
"""
_TEXTS = """
    ascii btrim char char_length character_length chr concat concat_ws decode encode format glob hex
    initcap instr lcase left length like like_fuzzy lower lpad ltrim md5 octet_length overlay pad
    position printf quote regexp_like regexp_replace repeat replace reverse right rpad rtrim sha
    sha1 sha2 split_part starts_with str_position string_agg strpos strposition substr substring
    to_char to_number translate trim ucase unhex unicode upper uuid
"""
_TIMES = """
    age current_date current_time current_timestamp date date_part date_trunc datetime extract
    interval julianday justify_days justify_hours justify_interval localtime localtimestamp
    make_date make_interval make_time make_timestamp make_timestamptz now statement_timestamp
    str_to_date str_to_time strftime time time_to_str timediff timestamp timestamp_trunc to_date
    to_timestamp transaction_timestamp unix_to_time unixepoch
"""
_DOCUMENTS = """
    array_agg array_append array_cat array_concat array_length array_position array_prepend
    array_remove array_replace array_size array_to_string cardinality explode
    exploding_generate_series generate_series json json_agg json_array json_array_length
    json_build_array json_build_object json_each json_extract json_extract_scalar json_group_array
    json_group_object json_insert json_object json_object_agg json_patch json_quote json_remove
    json_replace json_set json_tree json_type json_valid jsonb jsonb_agg jsonb_array_elements
    jsonb_build_array jsonb_build_object jsonb_contains jsonb_extract jsonb_insert jsonb_set
    parse_json string_to_array to_json to_jsonb unnest
"""
_WINDOWS = """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
"""
_RANDOM = """
    gen_random_uuid rand random randomblob zeroblob
"""
_SQLITE = """
    -> ->> changes last_insert_rowid likelihood likely typeof unlikely
"""

ALLOWED = frozenset(
    " ".join((_LOGIC, _NUMBERS, _TEXTS, _TIMES, _DOCUMENTS, _WINDOWS, _RANDOM, _SQLITE)).split()
)

# Nobody's statement may call these: they would switch off what records it.
NEVER = frozenset({"load_extension", "pg_reload_conf", "set_config"})
