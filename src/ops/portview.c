/* portview - what users are told about published ports; see portview.h. */
#include "ops/portview.h"

#include "engine/published.h"
#include "ops/events.h"

void portview_remark(const struct op_events *ev, const struct publish *spec, const char *at)
{
	if (spec->port == 0)
		op_remark(ev, "port %u inside is reachable at %s", spec->inner, at);
	if (!address_is_loopback(&spec->address) || address_is_unspecified(&spec->address))
		op_remark(ev, "%s can be reached from other machines", at);
}

void portview_remark_all(const struct op_events *ev, const struct published *ports)
{
	char at[PUBLISH_TEXT_MAX_BYTES];

	for (unsigned i = 0; i < ports->count; i++)
		portview_remark(ev, &ports->ports[i].spec, published_format(&ports->ports[i], at));
}
