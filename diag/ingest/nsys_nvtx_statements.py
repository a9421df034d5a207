"""The SQL that reads NVTX events of an Nsight Systems export and payloads, filled in as `nsys_statements` says."""

NVTX_DOMAINS = """
    SELECT {globalTid}, {domainId}, COALESCE(CAST({text} AS BLOB), {string})
      FROM src.{table} t
     WHERE {eventType} = :domain_create
"""

NVTX_CATEGORIES = """
    SELECT {globalTid}, {domainId}, {category}, COALESCE(CAST({text} AS BLOB), {string})
      FROM src.{table} t
     WHERE {eventType} = :category_name
"""

# Of millions of events each column that is looked at takes time.
NVTX_COUNT = "SELECT COUNT(*), 0 FROM src.{table} t WHERE {eventType} IN ({types})"
NVTX_COUNT_PAYLOADS = "SELECT COUNT(*), COUNT({binaryData}) FROM src.{table} t WHERE {eventType} IN ({types})"
NVTX_HAS_EXTRAS = """
    SELECT EXISTS (
        SELECT 1 FROM src.{table} t
         WHERE {eventType} IN ({types})
           AND COALESCE({category}, {jsonText}, {jsonTextId}, {binaryData}, {uint64Value}, {int64Value}, {doubleValue},
                        {uint32Value}, {int32Value}, {floatValue}) IS NOT NULL)
"""

PAYLOAD_ENTRIES = """
    SELECT {domainId}, {schemaId}, {idx}, COALESCE(CAST({flags} AS INTEGER), 0), {type}, CAST({name} AS BLOB),
           COALESCE(CAST({offset} AS INTEGER), 0)
      FROM src.{table} t
     WHERE typeof({domainId}) = 'integer' AND typeof({schemaId}) = 'integer' AND typeof({idx}) = 'integer'
       AND typeof({type}) = 'integer'
     ORDER BY 1, 2, 3
     LIMIT 100000
"""
PAYLOAD_ENUMS = """
    SELECT {domainId}, {schemaId}, {value}, CAST({name} AS BLOB)
      FROM src.{table} t
     WHERE typeof({domainId}) = 'integer' AND typeof({schemaId}) = 'integer' AND typeof({value}) = 'integer'
     LIMIT 100000
"""
COMMUNICATION = """
    SELECT th.value, p.value, {start}, {end}, COALESCE(CAST({text} AS BLOB), {string}), CAST({binaryData} AS BLOB)
      FROM src.{table} t
      JOIN map_thread th ON th.key = {globalTid}
      JOIN map_process p ON p.key = {globalTid} - {globalTid} % 0x1000000
     WHERE {binaryData} IS NOT NULL AND length(CAST({binaryData} AS BLOB)) <= 8192 AND {is_timed}
"""

# Read through Arrow from the export itself, so without the schema prefix. A payload that is a number is JSON as it is.
NVTX_RANGES = """
    SELECT {start} AS start_ns,
           CASE WHEN typeof({end}) = 'integer' THEN {end} ELSE 9223372036854775807 END AS end_ns,
           {globalTid} AS global_tid,
           CASE WHEN typeof({endGlobalTid}) = 'integer' THEN {endGlobalTid} ELSE {globalTid} END AS end_global_tid,
           {eventType} AS event_type,
           COALESCE(CAST({domainId} AS INTEGER), 0) AS domain,
           COALESCE(substr(CAST({text} AS BLOB), 1, {longest}), {string}, CAST('#' || {textId} AS BLOB), x'') AS text
           {extras}
      FROM {table} t
     WHERE {eventType} IN ({push_pop}, {start_end}, {mark})
       AND {is_instant} AND typeof({globalTid}) = 'integer'
       AND (typeof({end}) <> 'integer' OR {end} <= {latest} AND {end} - {start} BETWEEN 0 AND {longest_ns})
"""
NVTX_EXTRAS = """,
           COALESCE(CAST({category} AS INTEGER), 0) AS category,
           COALESCE(substr(CAST({jsonText} AS BLOB), 1, {longest}), {json_string},
                    CAST(COALESCE({uint64Value}, {int64Value}, {doubleValue}, {uint32Value}, {int32Value}, {floatValue})
                         AS BLOB), x'') AS payload,
           COALESCE(substr(CAST({binaryData} AS BLOB), 1, 8192), x'') AS binary
"""
