"""The SQL that moves sampled metrics of an Nsight Systems export into the case, filled in as `nsys_statements` says."""

COUNTER_SERIES = (
    "INSERT INTO counter_series (source_id, device, nic, name_id, unit) VALUES (?, ?, ?, ?, ?) RETURNING id"
)

# A GPU metric's type id and number make one key, so that each of millions of samples costs one look-up.
MOST_METRICS = 4096
MOST_SERIES = 1 << 16  # of damaged or hostile files; 64 metrics of a thousand devices
PERFWORKS_GPUS = """
    SELECT {pwGpuId}, {id} FROM src.{table} t WHERE typeof({pwGpuId}) = 'integer' AND typeof({id}) = 'integer'
"""
GPU_METRIC_NAMES = f"""
    SELECT {{typeId}}, {{metricId}}, CAST({{metricName}} AS BLOB)
      FROM src.{{table}} t
     WHERE typeof({{typeId}}) = 'integer' AND typeof({{metricId}}) = 'integer'
       AND {{metricId}} BETWEEN 0 AND {MOST_METRICS - 1} AND {{typeId}} BETWEEN 0 AND {(1 << 63) // MOST_METRICS - 1}
     LIMIT {MOST_SERIES}
"""
# Clocks are unsigned numbers of 32 bits in a signed column: no metric is negative by itself.
GPU_METRICS = f"""
    INSERT INTO counter (series_id, time_ns, value)
    SELECT m.value, {{timestamp}}, CASE WHEN {{value}} < 0 THEN {{value}} + 4294967296 ELSE {{value}} END
      FROM src.{{table}} t
      JOIN map_series m ON m.key = {{typeId}} * {MOST_METRICS} + {{metricId}}
     WHERE typeof({{timestamp}}) = 'integer' AND {{timestamp}} BETWEEN {{earliest}} AND {{latest}}
       AND {{metricId}} BETWEEN 0 AND {MOST_METRICS - 1} AND {{is_number}}
"""

NETWORK_CARDS = """
    SELECT {globalId}, (SELECT CAST(i.name AS BLOB) FROM src.TARGET_INFO_NIC_INFO i WHERE i.nicId = {nicId})
      FROM src.{table} t
     WHERE typeof({globalId}) = 'integer'
"""
NETWORK_METRIC_NAMES = """
    SELECT {metricsListId}, {metricsIdx}, CAST({name} AS BLOB), CAST({unit} AS BLOB) FROM src.{table} t
"""
NO_PORT = -1  # older exports tell the port of no card
_NETWORK_KEY = "{globalId}, COALESCE({portId}, -1), {metricsListId}, {metricsIdx}"
NETWORK_SERIES = f"""
    SELECT DISTINCT {_NETWORK_KEY}
      FROM src.{{table}} t
     WHERE typeof({{globalId}}) = 'integer' AND typeof(COALESCE({{portId}}, -1)) = 'integer'
       AND typeof({{metricsListId}}) = 'integer' AND typeof({{metricsIdx}}) = 'integer'
     LIMIT {MOST_SERIES}
"""
MAP_NETWORK_SERIES = """
    CREATE TEMP TABLE map_series (card, port, list, metric, value, PRIMARY KEY (card, port, list, metric)) WITHOUT ROWID
"""
NETWORK_METRICS = f"""
    INSERT INTO counter (series_id, time_ns, value)
    SELECT m.value, {{start}}, {{value}}
      FROM src.{{table}} t
      JOIN map_series m ON (m.card, m.port, m.list, m.metric) = ({_NETWORK_KEY})
     WHERE {{is_instant}} AND {{is_number}}
"""
